"""The health page for machines, GET /healthz: whether this process can serve, never slow.

Everybody may read whether database and broker respond. Counts and names of queues are for staff,
and for monitoring with HEALTH_TOKEN. Whether the process lives at all: `liveness`.
"""

import hmac
import time
from functools import cache
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
from jobs.inspection import stats
from jobs.inspection.unserved import unserved

log = structlog.get_logger(__name__)

UNKNOWN = ("events", "jobs", "workers", "tick_age_s", "ticked_by", "unserved")
"""What only the database knows."""
BROKER_SECONDS = 1.0
DATABASE_MILLISECONDS = 3000
BROKER_CACHE_SECONDS = 2.0  # the broker is not checked more often than that

_broker: tuple[float, str] | None = None


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Return the state of the engines; status 503 if the database is down.

    Who may see more also gets the state of jobs, workers and upkeep. `events` and `completed` are
    estimates once the tables are large. `unserved` names the queues whose due jobs do not get on.
    `tick_age_s` is the age of the last tick, `ticked_by` the process that did it; null: none yet.
    """
    health = {"database": "", "broker": broker()} | database(request)
    return JsonResponse(health, status=200 if health["database"] == "ok" else 503)


def database(request: HttpRequest) -> dict[str, Any]:
    """Return the state of PostgreSQL and, for those who may see them, of the jobs: all null when it
    is down."""
    knows_token = _has_token(request)
    try:
        if not knows_token and settings.SESSION_COOKIE_NAME not in request.COOKIES:
            with connection.cursor() as cursor:  # one statement, since each waits for its turn
                cursor.execute("SELECT 1")
            return {"database": "ok"}
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {DATABASE_MILLISECONDS}")
            may_see = knows_token or (request.user.is_active and request.user.is_staff)
            return {"database": "ok"} | (details() if may_see else {})
    except DatabaseError as error:
        log.warning("healthz.database_away", error=str(error).strip().splitlines()[:1])
        return {"database": "away"} | (dict.fromkeys(UNKNOWN) if knows_token else {})


def details() -> dict[str, Any]:
    """Return counts, names of queues and who ticked last."""
    tick = stats.last_tick()
    return {
        "events": stats.estimate(Event._meta.db_table),
        "jobs": stats.totals(),
        "workers": len(stats.workers()),
        "tick_age_s": None if tick.age is None else round(tick.age, 1),
        "ticked_by": tick.by,
        "unserved": [queue.name for queue in unserved()],
    }


def _has_token(request: HttpRequest) -> bool:
    """Whether the request has the token of monitoring."""
    header = request.headers.get("Authorization", "").encode()
    token = f"Bearer {settings.HEALTH_TOKEN}".encode()
    return bool(settings.HEALTH_TOKEN) and hmac.compare_digest(header, token)


def broker() -> str:
    """Return "ok" or "away", not older than BROKER_CACHE_SECONDS."""
    global _broker
    now = time.monotonic()
    if _broker is None or now - _broker[0] > BROKER_CACHE_SECONDS:
        _broker = (now, "ok" if broker_answers(settings.BROKER_URL) else "away")
    return _broker[1]


def broker_answers(url: str) -> bool:
    """Whether the broker responds within a second or two."""
    try:
        if url.startswith("redis"):
            _ping(url)
        else:
            _connect_amqp(url)
    except Exception as error:
        # Each client library has its own errors.
        log.warning("healthz.broker_away", error=type(error).__name__)
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
    """Return a client that keeps its connections: a new one takes five more round trips."""
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
