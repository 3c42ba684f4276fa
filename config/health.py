"""GET /healthz: how the platform does, for machines. No login, no secrets, never slow."""

import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu import Connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from events.models import Event
from jobs import numbers

log = structlog.get_logger(__name__)

BROKER_SECONDS = 1.0
DATABASE_MILLISECONDS = 3000
KEPT_SECONDS = 2.0  # the broker is asked no more often, whoever asks us

_broker: tuple[float, str] | None = None


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """The state of engines, jobs, workers and beat; 503 if the database is away.

    `events` and `completed` are estimates once the tables are large. `unserved` names the queues
    whose due jobs nobody takes. `beat_age_s` is the time since the last tick; null: none yet.
    """
    found = {"database": "", "broker": broker()} | database()
    return JsonResponse(found, status=200 if found["database"] == "ok" else 503)


def database() -> dict[str, Any]:
    """What PostgreSQL says of itself and of the jobs; all null when it is away."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {DATABASE_MILLISECONDS}")
            age = numbers.beat_age()
            return {
                "database": "ok",
                "events": numbers.estimate(Event._meta.db_table),
                "jobs": numbers.totals(),
                "workers": len(numbers.workers()),
                "beat_age_s": None if age is None else round(age, 1),
                "unserved": numbers.unserved(),
            }
    except DatabaseError as error:
        log.warning("healthz.database_away", error=str(error).strip().splitlines()[:1])
        unknown = dict.fromkeys(("events", "jobs", "workers", "beat_age_s", "unserved"))
        return {"database": "away", **unknown}


def broker() -> str:
    """ok or away, not older than KEPT_SECONDS."""
    global _broker
    now = time.monotonic()
    if _broker is None or now - _broker[0] > KEPT_SECONDS:
        _broker = (now, "ok" if broker_answers(settings.BROKER_URL) else "away")
    return _broker[1]


def broker_answers(url: str) -> bool:
    """Whether the broker answers within a second or two."""
    try:
        if url.startswith("redis"):
            _ping(url)
        else:
            _shake_hands(url)
    except Exception as error:
        # Each client library has errors of its own; any of them means no.
        log.warning("healthz.broker_away", error=type(error).__name__)
        return False
    return True


def _ping(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "redis+socket":
        number = parse_qs(parts.query).get("virtual_host", ["0"])[0]
        url = f"unix://{parts.netloc}{parts.path}?db={number.strip('/') or 0}"
    client = redis.Redis.from_url(
        url,
        socket_timeout=BROKER_SECONDS,
        socket_connect_timeout=BROKER_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        client.ping()
    finally:
        client.close()


def _shake_hands(url: str) -> None:
    patience = {"read_timeout": BROKER_SECONDS, "write_timeout": BROKER_SECONDS}
    with Connection(url, connect_timeout=BROKER_SECONDS, transport_options=patience) as link:
        link.ensure_connection(max_retries=1, interval_start=0)  # connect() sleeps after a refusal
