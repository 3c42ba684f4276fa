"""Check whether the broker answers, at most every few seconds and with a short timeout."""

from functools import cache
from urllib.parse import parse_qs, urlsplit

import redis
import structlog
from celery import current_app
from django.conf import settings
from kombu import Connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from tailrace.environment.conf import on_platform
from tailrace.jobs.platform.inspection.recent import Recent

log = structlog.get_logger(__name__)

BROKER_SECONDS = 1.0
BROKER_CACHE_SECONDS = 2.0  # between two checks of the broker


def broker() -> str:
    """Return the broker's state, "ok" or "away", at most BROKER_CACHE_SECONDS old."""
    return recent.get(BROKER_CACHE_SECONDS, waits=True)


def broker_answers(url: str) -> bool:
    """Return whether the broker responds within about two seconds."""
    try:
        if url.startswith("redis"):
            _ping(url)
        else:
            _connect_amqp(url)
    except Exception as error:
        # Each client library has its own errors.
        log.warning("broker.away", error=type(error).__name__)
        return False
    return True


def _ping(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "redis+socket":
        number = parse_qs(parts.query).get("virtual_host", ["0"])[0]
        url = f"unix://{parts.netloc}{parts.path}?db={number.strip('/') or 0}"
    _client(url).ping()


@cache
def _client(url: str) -> redis.Redis:
    """Return a client that keeps its connections: a new connection takes five round trips."""
    return redis.Redis.from_url(
        url,
        socket_timeout=BROKER_SECONDS,
        socket_connect_timeout=BROKER_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


def _connect_amqp(url: str) -> None:
    timeouts = {"read_timeout": BROKER_SECONDS, "write_timeout": BROKER_SECONDS}
    with Connection(url, connect_timeout=BROKER_SECONDS, transport_options=timeouts) as amqp:
        amqp.ensure_connection(max_retries=1, interval_start=0)  # connect() sleeps after a refusal


def _project_broker_answers() -> bool:
    """Ask the broker of another project, with the options that it gives to Celery."""
    if str(url := current_app.conf.broker_url).startswith("redis://"):
        return broker_answers(url)
    try:
        with current_app.connection_for_write(connect_timeout=BROKER_SECONDS) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=1)
    except Exception as error:
        log.warning("broker.away", error=type(error).__name__)
        return False
    return True


def _answers() -> bool:
    return broker_answers(settings.BROKER_URL) if on_platform() else _project_broker_answers()


recent = Recent(lambda: "ok" if _answers() else "away")
