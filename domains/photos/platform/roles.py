"""The receiver role of gatherings."""

from tailrace.domains.photos.models import Photo
from tailrace.events.publish import Recorded
from tailrace.subscriptions.types.roles import Receivers, role


@role("photographer")
def photographer(event: Recorded) -> Receivers:
    """Users with a photo in the gathering."""
    photos = Photo.objects.filter(gathering=event.payload.gathering, user__isnull=False).order_by()
    return Receivers.of(photos.values_list("user__username", flat=True).distinct())
