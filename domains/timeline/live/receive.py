"""Store points that a device sends. Points that `store` has committed survive a crash."""

from collections.abc import Sequence

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.domains.timeline.imports import quotas
from tailrace.domains.timeline.live.announce import APART, Stretch, collect
from tailrace.domains.timeline.live.places import enqueue_naming
from tailrace.domains.timeline.models import Device
from tailrace.domains.timeline.models.place import CELL
from tailrace.domains.timeline.points.points import Point
from tailrace.web.accounts.user_lock import locked
from tailrace.web.uploads.errors import QuotaExceeded


def store(user: User, device_name: str, points: Sequence[Point]) -> int:
    """Store valid points of the user's device, which is created if it does not exist; return how
    many are new. Raises UploadRejected."""
    once = {point[:3]: point for point in reversed(points)}
    with transaction.atomic():
        device = _device(user, device_name)
        return _insert(device, list(once.values())) if once else 0


def _device(user: User, name: str) -> Device:
    """Return the device with its row locked. The lock serializes its requests, and prevents its
    deletion."""
    name = " ".join(name.split()) or "default"
    devices = Device.objects.select_for_update(no_key=True).filter(user=user, name=name)
    if device := devices.first():
        return device
    with locked(user):
        quotas.device_of(user, name)
    return devices.get()


# A repeated point that belongs to an import that is being undone becomes a point of the device
# itself, so that the undo does not delete it. New cells are inserted to be geocoded.
_INSERT = f"""
WITH added AS (
  INSERT INTO tailrace_timeline_point AS known
    (device_id, recorded_at, lon, lat, altitude, accuracy, speed, course)
  SELECT %(device)s, to_timestamp(0) + recorded_at * interval '1 microsecond', lon, lat,
         altitude, accuracy, speed, course
  FROM unnest(%(times)s::bigint[], %(lons)s::int[], %(lats)s::int[], %(altitudes)s::real[],
              %(accuracies)s::real[], %(speeds)s::real[], %(courses)s::real[])
    AS new (recorded_at, lon, lat, altitude, accuracy, speed, course)
  ORDER BY recorded_at, lon, lat
  ON CONFLICT (device_id, recorded_at, lon, lat) DO UPDATE SET import_id = NULL
  WHERE known.import_id IN (
    SELECT id FROM tailrace_timeline_import WHERE device_id = %(device)s AND state = 'undoing')
  RETURNING recorded_at, lon, lat
), cells AS (
  INSERT INTO tailrace_timeline_place (device_id, cell_lat, cell_lon, name, country, time_zone,
    is_named)
  SELECT DISTINCT %(device)s::bigint, floor(lat / %(cell)s::float8)::int,
         floor(lon / %(cell)s::float8)::int, '', '', '', false
  FROM added
  ON CONFLICT DO NOTHING
  RETURNING 1
)
SELECT count(*), min(recorded_at), max(recorded_at), {clock.NOW}, (SELECT count(*) FROM cells)
FROM (
  SELECT recorded_at, count(*) FILTER (WHERE is_first) OVER (ORDER BY recorded_at) AS stretch
  FROM (SELECT recorded_at, recorded_at - lag(recorded_at) OVER (ORDER BY recorded_at)
               > make_interval(secs => %(apart)s) AS is_first FROM added) each
) known
GROUP BY stretch ORDER BY stretch
"""
COLUMNS = ("times", "lons", "lats", "altitudes", "accuracies", "speeds", "courses")


def _insert(device: Device, points: Sequence[Point]) -> int:
    left = quotas.points_left(device.user_id)
    if left is not None and len(points) > left:
        most = settings.TIMELINE_MAX_POINTS_PER_USER
        message = f"your timeline may have {most:,} points (TIMELINE_MAX_POINTS_PER_USER)"
        message += f"; you can add {left:,} more, but sent {len(points):,}"
        raise QuotaExceeded(("points", message))
    columns = dict(zip(COLUMNS, map(list, zip(*points, strict=True)), strict=True))
    rows = query(_INSERT, device=device.pk, cell=CELL, apart=APART.total_seconds(), **columns)
    inserted = sum(row[0] for row in rows)
    if rows:
        device.live_points += inserted
        collect(device, [Stretch(*row[:3]) for row in rows], now=rows[0][3])
        if rows[0][4]:
            enqueue_naming(device.pk)
    return int(inserted)
