"""The domain's cards on the overview: how far the pollers are, and what they could not read."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from domains.builds.event_types import LogReset, SyncLost, Unknown
from domains.builds.models import Poller
from events import clock
from events.models import Event
from jobs.panels import Panel

LATEST = 8
LOOKED_AT = 1000
"""Flagged events whose raw types are counted, the latest first."""
MISSED_POLLS = 3
"""A poller that let so many intervals pass is late."""


@dataclass(frozen=True, slots=True)
class PollerRow:
    """One line of the panel."""

    poller: Poller
    state: str
    silent_seconds: float | None
    retry_seconds: float | None


class Pollers(Panel):
    """How far the reading of each backend is, and what is wrong with it."""

    title = "Pollers"
    order = 20
    template = "builds/panels/pollers.html"
    wide = True

    def context(self) -> dict[str, Any]:
        known = {poller.name: poller for poller in Poller.objects.all()[:50]}
        unread = [name for name in settings.OBS_BACKENDS if name not in known]
        return {"rows": [_row(poller) for poller in known.values()], "unread": unread}


def _row(poller: Poller) -> PollerRow:
    now = clock.now()
    silent = poller.silent_for(now)
    retry = None
    if poller.backoff_until and poller.backoff_until > now:
        retry = (poller.backoff_until - now).total_seconds()
    seconds = None if silent is None else silent.total_seconds()
    return PollerRow(poller, _state(poller, seconds), seconds, retry)


def _state(poller: Poller, silent: float | None) -> str:
    """Say in a word how a poller does."""
    if poller.name not in settings.OBS_BACKENDS:
        return "off"
    if poller.errors_in_row:
        return "failing"
    if silent is None or silent > MISSED_POLLS * max(settings.OBS_POLL_SECONDS, 10):
        return "late"
    return "behind" if poller.behind else "up to date"


# The inner query walks the index of the flagged events' type, and not far.
_UNKNOWN = """
SELECT raw_type, count(*) FROM (
  SELECT left(payload ->> 'raw_type', 60) AS raw_type FROM events_event
  WHERE type = %(type)s AND problem <> '' AND acknowledged_at IS NULL
  ORDER BY id DESC LIMIT %(looked_at)s
) latest GROUP BY raw_type ORDER BY count(*) DESC, raw_type LIMIT %(limit)s
"""


class Gaps(Panel):
    """What of the logs is lost or began anew, and which types nobody knows, until acknowledged."""

    title = "Gaps"
    order = 45
    template = "builds/panels/gaps.html"
    permission = "events.view_event"

    def context(self) -> dict[str, Any]:
        gaps = Event.objects.flagged().filter(type__in=[SyncLost.name, LogReset.name])
        with connection.cursor() as cursor:
            cursor.execute(
                _UNKNOWN, {"type": Unknown.name, "looked_at": LOOKED_AT, "limit": LATEST}
            )
            unknown = cursor.fetchall()
        return {"gaps": list(gaps.order_by("-id")[:LATEST]), "unknown": unknown}
