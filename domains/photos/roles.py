"""Receiver roles of gatherings."""

from domains.photos.models import Photo
from events.publish import Recorded
from subscriptions.roles import Receivers, role


@role("photographer")
def photographer(event: Recorded) -> Receivers:
    """Those whose photos are in the gathering."""
    of_gathering = Photo.objects.filter(
        gathering=event.payload["gathering"], user__isnull=False
    ).order_by()
    return Receivers.of(of_gathering.values_list("user__username", flat=True).distinct())
