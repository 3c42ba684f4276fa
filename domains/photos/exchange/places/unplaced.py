"""Find a user's photos without a location by the time when they were taken."""

from collections.abc import Iterator
from datetime import datetime

from tailrace.domains.photos.event_types import PLACE_GAP
from tailrace.domains.photos.models import Photo

PHOTOS_PER_TURN = 1000
"""Photos that are read by one statement."""


def unplaced_between(
    user_id: int, first: datetime, last: datetime
) -> Iterator[list[tuple[int, datetime]]]:
    """Yield (id, taken at) of the user's photos without a location for which points between `first`
    and `last` are near enough (PLACE_GAP), in lists of PHOTOS_PER_TURN."""
    photos = Photo.objects.filter(
        user=user_id,
        state=Photo.State.UNPLACED,
        taken_at__gte=first - PLACE_GAP,
        taken_at__lte=last + PLACE_GAP,
    )
    rows = photos.order_by("taken_at", "pk").values_list("pk", "taken_at")
    turn = list(rows[:PHOTOS_PER_TURN])
    while turn:
        yield turn
        id, taken_at = turn[-1]
        after = rows.filter(taken_at__gte=taken_at).exclude(taken_at=taken_at, pk__lte=id)
        turn = list(after[:PHOTOS_PER_TURN])
