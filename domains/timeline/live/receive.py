"""Store points that a device sends. Points that `store` has committed survive a crash."""

from collections.abc import Sequence
from typing import Any

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
from tailrace.domains.timeline.models.point_source import THE_DEVICE
from tailrace.domains.timeline.points.points import Point
from tailrace.domains.timeline.points.sources import HIDDEN, UNDOABLE
from tailrace.web.accounts.user_lock import locked
from tailrace.web.uploads.errors import QuotaExceeded


def store(user: User, device_name: str, points: Sequence[Point]) -> int:
    """Store valid points of the user's device, which is created if it does not exist and there are
    points; return how many are new. Raises UploadRejected."""
    once = {point[:3]: point for point in reversed(points)}
    if not once:
        return 0
    with transaction.atomic():
        return _insert(_device(user, device_name), list(once.values()))


def _device(user: User, text: str) -> Device:
    """Return the device with its row locked. The lock serializes its requests, and delays a merge
    or deletion of the device."""
    name = " ".join(text.split()) or "default"
    devices = Device.objects.select_for_update(no_key=True).filter(user=user)
    if device := devices.called(name):
        return device
    with locked(user):
        return quotas.device_of(user, name)


_NEW = """
new AS (
  SELECT to_timestamp(0) + recorded_at * interval '1 microsecond' AS recorded_at, lon, lat,
         altitude, accuracy, speed, course
  FROM unnest(%(times)s::bigint[], %(lons)s::int[], %(lats)s::int[], %(altitudes)s::real[],
              %(accuracies)s::real[], %(speeds)s::real[], %(courses)s::real[])
    AS new (recorded_at, lon, lat, altitude, accuracy, speed, course)
  ORDER BY recorded_at, lon, lat
)"""
# New cells are inserted to be geocoded. A row of the result is a stretch of points.
_STRETCHES = f"""
cells AS (
  INSERT INTO tailrace_timeline_place (device_id, cell_lat, cell_lon, name, country, time_zone,
    is_named)
  SELECT DISTINCT %(device)s::bigint, floor(lat / %(cell)s::float8)::int,
         floor(lon / %(cell)s::float8)::int, '', '', '', false
  FROM added
  ON CONFLICT DO NOTHING
  RETURNING 1
)
SELECT count(*) FILTER (WHERE is_new), min(recorded_at) FILTER (WHERE is_new),
       max(recorded_at) FILTER (WHERE is_new), {clock.NOW}, (SELECT count(*) FROM cells)
FROM (
  SELECT recorded_at, is_new,
         count(*) FILTER (WHERE is_first) OVER (ORDER BY recorded_at) AS stretch
  FROM (SELECT recorded_at, is_new, recorded_at - lag(recorded_at) OVER (ORDER BY recorded_at)
               > make_interval(secs => %(apart)s) AS is_first FROM added) each
) known
GROUP BY stretch ORDER BY stretch
"""
_INSERT = f"""
WITH {_NEW}, added AS (
  INSERT INTO tailrace_timeline_point
    (device_id, recorded_at, lon, lat, altitude, accuracy, speed, course)
  SELECT %(device)s, new.* FROM new
  ON CONFLICT DO NOTHING
  RETURNING recorded_at, lon, lat, true AS is_new
), {_STRETCHES}
"""
# The device becomes a further source of known points; points that were hidden are new to readers.
_SHARE = f"""
WITH {_NEW}, known AS (
  SELECT recorded_at, lon, lat, {HIDDEN} AS is_new FROM tailrace_timeline_point p
  JOIN new USING (recorded_at, lon, lat)
  WHERE device_id = %(device)s AND import_id IN ({UNDOABLE})
), shared AS (
  INSERT INTO tailrace_timeline_pointsource (device_id, recorded_at, lon, lat, import_id)
  SELECT %(device)s, recorded_at, lon, lat, {THE_DEVICE} FROM known
  ON CONFLICT DO NOTHING
  RETURNING recorded_at, lon, lat
), added AS (
  SELECT * FROM known JOIN shared USING (recorded_at, lon, lat)
), {_STRETCHES}
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
    params = {"device": device.pk, "cell": CELL, "apart": APART.total_seconds(), **columns}
    inserted = _added(device, query(_INSERT, **params), is_first_source=True)
    if inserted == len(points):
        return inserted
    return inserted + _added(device, query(_SHARE, **params))


def _added(
    device: Device, rows: Sequence[tuple[Any, ...]], *, is_first_source: bool = False
) -> int:
    """Count the added points for the device's next event, and enqueue the naming of new cells;
    return how many points are new to readers."""
    stretches = [Stretch(*row[:3]) for row in rows if row[0]]
    count = sum(stretch.count for stretch in stretches)
    if is_first_source:
        device.live_points += count
    if stretches:
        collect(device, stretches, now=rows[0][3])
    if rows and rows[0][4]:
        enqueue_naming(device.pk)
    return count
