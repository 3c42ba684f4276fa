"""The receiver roles of deposition events."""

from domains.records.models import Deposition
from events.publish import Recorded
from subscriptions.types.roles import Receivers, role


@role("depositor")
def depositor(event: Recorded) -> Receivers:
    """Who submitted the deposition that the event is about; nobody, if it was harvested."""
    rows = Deposition.objects.filter(pk=event.raw_payload["deposition"])
    names = rows.values_list("submitted_by__username", flat=True)
    return Receivers.of([name or "" for name in names])
