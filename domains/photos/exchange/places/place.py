"""Find photos without a location, and store the locations from their owner's timeline."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.event_types import PLACE_GAP
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.create_photo import publish_uploaded

PHOTOS_PER_TURN = 1000
"""Photos that are read by one statement."""
Place = tuple[float, float]
"""Latitude and longitude in degrees."""


def unplaced_photos(
    user_id: int, first: datetime, last: datetime
) -> Iterator[list[tuple[int, datetime]]]:
    """Yield the user's photos without a location that were taken between `first` and `last`, or at
    most PLACE_GAP earlier or later, as lists of PHOTOS_PER_TURN pairs: (id, taken at)."""
    near = (first - PLACE_GAP, last + PLACE_GAP)
    photos = Photo.objects.filter(user=user_id, state=Photo.State.UNPLACED, taken_at__range=near)
    rows = photos.order_by("taken_at", "pk").values_list("pk", "taken_at")
    turn = list(rows[:PHOTOS_PER_TURN])
    while turn:
        yield turn
        id, taken_at = turn[-1]
        after = rows.filter(taken_at__gte=taken_at).exclude(taken_at=taken_at, pk__lte=id)
        turn = list(after[:PHOTOS_PER_TURN])


# Rows are locked in the order of their ids, so that two jobs cannot deadlock.
_PLACE = f"""
WITH chosen AS MATERIALIZED (
  SELECT p.id, new.lat, new.lon FROM tailrace_photos_photo p
  JOIN unnest(%(ids)s::bigint[], %(lat)s::float8[], %(lon)s::float8[]) AS new (id, lat, lon)
    ON new.id = p.id
  WHERE p.user_id = %(user)s AND p.state = 'unplaced'
  ORDER BY p.id FOR UPDATE OF p
)
UPDATE tailrace_photos_photo p SET lat = chosen.lat, lon = chosen.lon, state = 'new',
  placed_at = {clock.NOW}, opened_at = {clock.NOW}, next_try_at = {clock.NOW}
FROM chosen WHERE p.id = chosen.id
RETURNING p.id
"""


def place_photos(user_id: int, places: Mapping[int, Place]) -> int:
    """Store the locations of the user's photos, by photo id, and publish `photos.uploaded`; return
    how many. Photos of other users and photos that have a location do not change."""
    with transaction.atomic():
        rows = query(
            _PLACE,
            user=user_id,
            ids=number_array(places),
            lat=number_array(lat for lat, _ in places.values()),
            lon=number_array(lon for _, lon in places.values()),
        )
        photos = list(Photo.objects.filter(pk__in=[id for (id,) in rows]).order_by("pk"))
        publish_uploaded(photos, User.objects.filter(pk=user_id).first())
    return len(photos)
