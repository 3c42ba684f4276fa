"""The panels of builds on the overview: the pollers, and gaps and unknown types in the logs."""

from typing import Any

from django.conf import settings

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.domains.builds.event_types.source_problems import LogReset, SyncLost, Unknown
from tailrace.domains.builds.models import Poller
from tailrace.domains.builds.sources.log_reader import NEAR_SLACK, SMALLEST_SLACK
from tailrace.events.models import Event
from tailrace.jobs.platform.inspection.visibility import VIEW_EVENT_PAYLOAD
from tailrace.jobs.platform.pages.panel import Panel

MAX_ROWS = 8
MAX_FLAGGED = 1000
"""The number of latest flagged events that are searched for unknown types."""
MISSED_POLLS = 3
"""A poller is late if it has not read for this many poll intervals."""


class Pollers(Panel):
    """The progress and the errors of each backend's poller."""

    title = "Pollers"
    order = 20
    template = "tailrace/builds/panels/pollers.html"
    wide = True

    def context(self) -> dict[str, Any]:
        pollers = list(Poller.objects.all()[:50])
        names = {poller.name for poller in pollers}
        unread = [name for name in settings.OBS_BACKENDS if name not in names]
        return {"rows": [_row(poller) for poller in pollers], "unread": unread}


def _row(poller: Poller) -> dict[str, Any]:
    now = clock.now()
    retry = (poller.backoff_until - now).total_seconds() if poller.backoff_until else 0
    silent_seconds = (now - poller.polled_at).total_seconds() if poller.polled_at else None
    return {
        "poller": poller,
        "state": _state(poller, silent_seconds),
        "slack": SMALLEST_SLACK,
        "silent_seconds": silent_seconds,
        "retry_seconds": retry if retry > 0 else None,
    }


def _state(poller: Poller, silent_seconds: float | None) -> str:
    """Return the poller's state as the panel shows it."""
    if poller.name not in settings.OBS_BACKENDS:
        return "off"
    if poller.errors_in_row:
        return "failing"
    if settings.OBS_NOPRUNE and max(poller.waiting, poller.behind or 0) >= NEAR_SLACK:
        return "far behind"
    allowed_seconds = MISSED_POLLS * max(settings.OBS_POLL_SECONDS, 10)
    if silent_seconds is None or silent_seconds > allowed_seconds:
        return "late"
    return "behind" if poller.behind else "up to date"


# The inner query reads a bounded part of the index of flagged events by type.
_UNKNOWN_TYPES = """
SELECT raw_type, count(*) FROM (
  SELECT left(payload ->> 'raw_type', 60) AS raw_type FROM tailrace_events_event
  WHERE type = %(type)s AND problem <> '' AND acknowledged_at IS NULL
  ORDER BY id DESC LIMIT %(max_flagged)s
) latest GROUP BY raw_type ORDER BY count(*) DESC, raw_type LIMIT %(limit)s
"""


class Gaps(Panel):
    """Lost notifications, reset logs and unknown types, until they are acknowledged."""

    title = "Gaps"
    order = 45
    template = "tailrace/builds/panels/gaps.html"
    permission = "tailrace_events.view_event"

    def context(self) -> dict[str, Any]:
        gaps = Event.objects.flagged().filter(type__in=[SyncLost.name, LogReset.name])
        unknown = query(_UNKNOWN_TYPES, type=Unknown.name, max_flagged=MAX_FLAGGED, limit=MAX_ROWS)
        if unknown and not self.user.has_perm(VIEW_EVENT_PAYLOAD):
            count = sum(row[1] for row in unknown)
            unknown = [(f"needs the permission {VIEW_EVENT_PAYLOAD}", count)]
        return {"gaps": list(gaps.order_by("-id")[:MAX_ROWS]), "unknown": unknown}
