"""The pages for machines, GET /healthz and GET /readyz: whether this process can serve, never slow.

Everybody may read whether database and broker respond, and whether the verdict on the whole system
is healthy. Its causes, counts and names of queues are for staff, and for monitoring with
HEALTH_TOKEN. Whether the process lives at all: `liveness`.
"""

import hmac
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from tailrace.events.models import Event
from tailrace.jobs.inspection import stats, verdict
from tailrace.jobs.inspection.broker import broker
from tailrace.jobs.inspection.unserved import unserved

log = structlog.get_logger(__name__)

UNKNOWN = ("causes", "events", "jobs", "workers", "tick_age_s", "ticked_by", "unserved")
"""What only the database knows."""
DATABASE_MILLISECONDS = 3000
AWAY = "away"


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Return the state of the engines; status 503 if the database is down.

    `status`: healthy, degraded, or away when the database is. Who may see more also gets the
    verdict's `causes` and the state of jobs, workers and upkeep. `events` and `completed` are
    estimates once the tables are large. `unserved` names the queues whose due jobs do not get on.
    `tick_age_s` is the age of the last tick, `ticked_by` the process that did it; null: none yet.
    """
    state = database(request)
    health = {"status": state.pop("status"), "database": "", "broker": broker()} | state
    return JsonResponse(health, status=200 if health["database"] == "ok" else 503)


def database(request: HttpRequest) -> dict[str, Any]:
    """Return the state of PostgreSQL and, for those who may see them, of the jobs: all null when it
    is down."""
    knows_token = has_token(request)
    try:
        if not knows_token and settings.SESSION_COOKIE_NAME not in request.COOKIES:
            with connection.cursor() as cursor:  # one statement, since each waits for its turn
                cursor.execute("SELECT 1")
            return {"status": verdict.current().status, "database": "ok"}
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {DATABASE_MILLISECONDS}")
            may_see = knows_token or (request.user.is_active and request.user.is_staff)
            now = verdict.current()
            state = {"status": now.status, "database": "ok"}
            return state | ({"causes": causes(now)} | details() if may_see else {})
    except DatabaseError as error:
        log.warning("healthz.database_away", error=str(error).strip().splitlines()[:1])
        away = {"status": AWAY, "database": AWAY}
        return away | (dict.fromkeys(UNKNOWN) if knows_token else {})


def causes(now: verdict.Verdict) -> list[dict[str, Any]]:
    """Return the causes as JSON, without what is private in them."""
    return [
        {
            "code": cause.code,
            "words": cause.words,
            "since": cause.since and cause.since.isoformat(),
        }
        for cause in now.causes
    ]


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


def has_token(request: HttpRequest) -> bool:
    """Whether the request has the token of monitoring."""
    header = request.headers.get("Authorization", "").encode()
    token = f"Bearer {settings.HEALTH_TOKEN}".encode()
    return bool(settings.HEALTH_TOKEN) and hmac.compare_digest(header, token)
