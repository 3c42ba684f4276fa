"""preview: what a subscription would have brought in the last days, saved or not."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction

from events import clock
from events.models import Event
from events.publish import Recorded
from subscriptions.audience import brought_by
from subscriptions.history import types_of
from subscriptions.models import EventSubscription
from subscriptions.recall import recall

DAYS = 30
"""Days that a preview goes back, at most."""
EXAMINED = 2000
"""Events that it looks at, at most: the newest."""
SLICE = 200
SECONDS = 3.0
"""After so long it looks at no further slice."""
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Preview:
    """How many events a row brings, and the first of them."""

    since: datetime
    until: datetime
    whole: bool
    """Whether all the days asked for were looked at; else `since` is later."""
    count: int
    first: list[Recorded]


def preview(row: EventSubscription, days: float) -> Preview:
    """Look back over so many days, DAYS at most; a saved row as it stands.

    Of a row that is not saved: as if it were, in the place of the receiver's own row of this
    type, role and channel. Nothing is kept of it.
    """
    if row.pk is not None:
        return _look(row, days)
    with transaction.atomic():
        same = EventSubscription.objects.filter(
            event_type=row.event_type,
            role=row.role,
            channel=row.channel,
            user=row.user,
            group=row.group,
        )
        row.pk = same.values_list("pk", flat=True).first()
        row.save()
        found = _look(row, days)
        transaction.set_rollback(True)
    row.pk = None
    return found


def _look(row: EventSubscription, days: float) -> Preview:
    """Go back from the newest, slice by slice."""
    until = clock.now()
    asked = since = until - timedelta(days=min(days, DAYS))
    patience = time.monotonic() + SECONDS
    ids = _newest(types_of(row))
    count, first = 0, list[Recorded]()
    for start in range(0, len(ids), SLICE):
        found = Event.objects.filter(pk__in=ids[start : start + SLICE], recorded_at__lt=until)
        events = [recall(event) for event in found.filter(recorded_at__gte=asked).order_by("id")]
        if not events:
            break
        brought = brought_by(row.pk, events, row.role)
        count += len(brought)
        first = [*(event for event in events if event.id in brought), *first][:SHOWN]
        if start + SLICE >= EXAMINED or time.monotonic() > patience:
            since = max(asked, events[0].recorded_at)
            break
    return Preview(since, until, since == asked, count, first)


# Type by type along the index (type, id): its cost does not grow with the history.
_NEWEST = """
SELECT id FROM unnest(%s::text[]) AS t (type), LATERAL (
  SELECT id FROM events_event e WHERE e.type = t.type ORDER BY id DESC LIMIT %s) AS newest
ORDER BY id DESC LIMIT %s
"""


def _newest(types: Sequence[str]) -> list[int]:
    """Return the ids of the newest events of these types, EXAMINED at most, the newest first."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [list(types), EXAMINED, EXAMINED])
        return [row[0] for row in cursor.fetchall()]
