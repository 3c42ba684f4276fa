"""Look up where a user was at given times, from the user's own points.

For each device, the last point before the time and the first point after it are used if they are
within the gap. The device with the nearest point in time decides. If it has both points, the
position is interpolated between them; otherwise it is the position of the one point.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction

from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.domains.timeline.event_types import SOURCE, PlacesKnown
from tailrace.domains.timeline.points.sources import HIDDEN
from tailrace.events.privacy.erase import erase
from tailrace.events.publish import NewEvent, Recorded, publish

MAX_TIMES = 100
LONGEST_GAP = 86_400
"""Maximum seconds between a photo and a point."""
WORST_ACCURACY = 200
"""Metres; less accurate points are ignored."""
POINTS_LOOKED_AT = 100
"""Maximum points of a device, before or after a time, that are checked for accuracy and visibility.
Further points are treated as too far away."""
_DEGREES = 1e7
_CIRCLE = 360 * 10_000_000


_Point = tuple[datetime, int, int]
"""Time, longitude, latitude."""

_SIDE = f"""
  SELECT recorded_at, lon, lat FROM (
    SELECT device_id, recorded_at, lon, lat, import_id, accuracy, coalesce(file_order, 0) AS place
    FROM tailrace_timeline_point
    WHERE device_id = d.id AND recorded_at {{range}}
    ORDER BY recorded_at {{order}} LIMIT %(most)s
  ) p
  WHERE coalesce(accuracy, 0) <= %(accuracy)s AND NOT {HIDDEN}
  ORDER BY recorded_at {{order}}, place {{order}} LIMIT 1
"""
_AROUND_TIMES = f"""
WITH d AS MATERIALIZED (
  SELECT id FROM tailrace_timeline_device
  WHERE user_id = %(user)s AND (removed_at IS NULL OR into_id IS NOT NULL) ORDER BY id LIMIT 1000
)
SELECT t.key, before.recorded_at, before.lon, before.lat, after.recorded_at, after.lon, after.lat
FROM unnest(%(keys)s::bigint[], %(times)s::timestamptz[]) AS t (key, at) CROSS JOIN d
LEFT JOIN LATERAL ({
    _SIDE.format(range="BETWEEN t.at - make_interval(secs => %(gap)s) AND t.at", order="DESC")
}) before ON true
LEFT JOIN LATERAL ({
    _SIDE.format(range="BETWEEN t.at AND t.at + make_interval(secs => %(gap)s)", order="ASC")
}) after ON true
WHERE before.recorded_at IS NOT NULL OR after.recorded_at IS NOT NULL
ORDER BY t.key, d.id
"""


def positions_at(
    user_id: int, times: Mapping[int, datetime], gap_seconds: float
) -> dict[int, tuple[float, float]]:
    """Return the known positions (latitude, longitude) in degrees at these times, by their keys.

    Raises ValueError for more than MAX_TIMES times.
    """
    if len(times) > MAX_TIMES:
        raise ValueError(f"{len(times)} times; at most {MAX_TIMES} can be looked up at once")
    rows = query(
        _AROUND_TIMES,
        user=user_id,
        keys=number_array(times),
        times=text_array(times.values()),
        gap=gap_seconds,
        most=POINTS_LOOKED_AT,
        accuracy=WORST_ACCURACY,
    )
    nearest: dict[int, tuple[float, list[_Point]]] = {}
    for key, *columns in rows:
        sides = (columns[:3], columns[3:])
        points = [(at, lon, lat) for at, lon, lat in sides if at is not None]
        distance = min(abs((at - times[key]).total_seconds()) for at, _, _ in points)
        if key not in nearest or distance < nearest[key][0]:
            nearest[key] = distance, points
    return {key: _position(points, times[key]) for key, (_, points) in nearest.items()}


def _position(points: Sequence[_Point], at: datetime) -> tuple[float, float]:
    """Return the position at this time, interpolated between the first and the last point."""
    (first_at, first_lon, first_lat), (last_at, last_lon, last_lat) = points[0], points[-1]
    duration = last_at - first_at
    part = (at - first_at) / duration if duration else 0.0
    east = last_lon - first_lon
    if abs(east) > _CIRCLE / 2:  # across the 180th meridian
        east -= _CIRCLE if east > 0 else -_CIRCLE
    lon = first_lon + part * east
    lon = (lon + _CIRCLE / 2) % _CIRCLE - _CIRCLE / 2 if abs(lon) > _CIRCLE / 2 else lon
    return (first_lat + part * (last_lat - first_lat)) / _DEGREES, lon / _DEGREES


def publish_places(request: Recorded) -> int:
    """Publish where the user was when the photos of the request were taken; return how many
    locations are known. The photos are erased from the request."""
    payload = request.payload
    times = {photo.photo: photo.taken_at for photo in payload.photos}
    positions = positions_at(payload.user_id, times, min(payload.within_seconds, LONGEST_GAP))
    places = [{"photo": id, "lat": lat, "lon": lon} for id, (lat, lon) in positions.items()]
    with transaction.atomic():
        if places:
            event = {"user_id": payload.user_id, "places": places}
            publish(NewEvent(PlacesKnown, event, source=SOURCE, actor=""))
        erase(request.source, [request.source_id], keep=["user_id"])
    return len(places)
