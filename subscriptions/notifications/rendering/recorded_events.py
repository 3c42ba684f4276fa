from collections.abc import Iterable

from tailrace.events.models import Event
from tailrace.events.publish import Recorded


def recorded_events(ids: Iterable[int]) -> list[Recorded]:
    """Return the events with these ids, ordered by id; deleted ones are missing."""
    rows = Event.objects.filter(pk__in=set(ids)).order_by("pk")
    return [Recorded.from_model(row) for row in rows]
