"""Store the locations that photos get from their owner's timeline."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.create_photo import publish_uploaded

Place = tuple[float, float]
"""Latitude and longitude in degrees."""

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
    """Store the locations of the user's photos and publish `photos.uploaded`; return how many.

    `places` maps photo ids to locations. Photos of other users and photos that have a location do
    not change. Joins the caller's transaction.
    """
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
