"""The health pages, GET /healthz and GET /readyz: whether this process can serve requests.
Everybody may read whether database and broker respond and whether the system is healthy; causes,
counts and names of queues are only for staff, and for monitoring with HEALTH_TOKEN."""

from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from tailrace.events.models import Event
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.broker import broker
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.queues.unserved import unserved
from tailrace.jobs.platform.inspection.storage.connections import are_taken, connections
from tailrace.jobs.platform.pages.access import has_token

log = structlog.get_logger(__name__)

UNKNOWN = (
    "causes", "events", "jobs", "workers", "tick_age_s", "ticked_by", "unserved", "connections",
)  # fmt: skip
"""The fields that are read from the database."""
DATABASE_MILLISECONDS = 3000
AWAY, FULL = "away", "full"


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Return the state of the engines; status 503 if the database is down, or full: it refuses the
    connection, because all are taken.

    `status` is healthy, degraded, or away without the database. Staff and monitoring also get
    the verdict's `causes` and the state of jobs, workers and upkeep. `events` and `completed` are
    estimates if the tables are large. `unserved` names queues with due jobs that no worker runs.
    `tick_age_s` is the age of the last tick in seconds, `ticked_by` the process that ran it; null:
    there was no tick yet. `connections` has the connections to the database that are used and
    possible, and how many of them are Tailrace's own.
    """
    state = database(request)
    health = {"status": state.pop("status"), "database": "", "broker": broker()} | state
    return JsonResponse(health, status=200 if health["database"] == "ok" else 503)


def database(request: HttpRequest) -> dict[str, Any]:
    """Return the state of PostgreSQL and, for staff and monitoring, of the jobs. If the database is
    down, monitoring gets null for the fields of the jobs."""
    is_monitoring = has_token(request)
    try:
        if not is_monitoring and settings.SESSION_COOKIE_NAME not in request.COOKIES:
            with connection.cursor() as cursor:  # only one statement, for speed
                cursor.execute("SELECT 1")
            return {"status": verdict.current().status, "database": "ok"}
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {DATABASE_MILLISECONDS}")
            may_see = is_monitoring or (request.user.is_active and request.user.is_staff)
            now = verdict.current()
            state = {"status": now.status, "database": "ok"}
            return state | ({"causes": causes(now)} | details() if may_see else {})
    except DatabaseError as error:
        log.warning("healthz.database_away", error=str(error).strip().splitlines()[:1])
        away = {"status": AWAY, "database": FULL if are_taken(error) else AWAY}
        return away | (dict.fromkeys(UNKNOWN) if is_monitoring else {})


def causes(now: verdict.Health) -> list[dict[str, Any]]:
    return [
        {
            "code": cause.code,
            "words": cause.words,
            "since": cause.since and cause.since.isoformat(),
        }
        for cause in now.causes
    ]


def details() -> dict[str, Any]:
    tick, used = stats.last_tick(), connections()
    return {
        "events": stats.estimate(Event._meta.db_table),
        "jobs": stats.totals(),
        "workers": len(stats.workers()),
        "tick_age_s": None if tick.age is None else round(tick.age, 1),
        "ticked_by": tick.by,
        "unserved": [queue.name for queue in unserved()],
        "connections": {"used": used.used, "possible": used.possible, "own": used.ours},
    }
