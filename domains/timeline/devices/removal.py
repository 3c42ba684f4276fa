"""Merge or delete a device in pieces: a job that can be killed at any point and goes on.

Each piece has its own transaction, which locks the devices, so a request of the other device waits
for one piece at most. Imports of both devices are promoted and undone only after the job.
"""

from collections.abc import Collection
from datetime import timedelta

from django.db import transaction
from django.db.models import F

from tailrace.db.query import database_now, execute, query
from tailrace.domains.timeline.event_types import ImportPromoted, PointsAdded
from tailrace.domains.timeline.imports.queues import enqueue_discard
from tailrace.domains.timeline.imports.steps.runs import Reporter
from tailrace.domains.timeline.live.places import enqueue_naming
from tailrace.domains.timeline.models import Device, Import, Place
from tailrace.domains.timeline.models.point_source import THE_DEVICE
from tailrace.domains.timeline.points.sources import MAY_BE_UNDONE
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.operations.cancel import cancel

REMOVE = "timeline.remove_device"
BATCH = 10_000
"""Rows per transaction."""
LATE = timedelta(minutes=10)


def enqueue_removals(device_ids: Collection[int]) -> int:
    """Enqueue jobs that merge or delete the devices; return how many are new."""
    devices = Device.objects.filter(pk__in=device_ids).values_list("pk", "user_id")
    jobs = [
        {"payload": {"device_id": id}, "unique_key": str(id), "lane": str(user_id)}
        for id, user_id in devices
    ]
    return enqueue_many(REMOVE, jobs)


def overdue(limit: int) -> list[int]:
    """Return the ids of devices whose removal began long ago. Their jobs may be at work."""
    rows = Device.objects.filter(removed_at__lt=database_now() - LATE).order_by("removed_at")
    return list(rows.values_list("pk", flat=True)[:limit])


def remove(job: ClaimedJob, device_id: int) -> dict[str, int]:
    """Merge or delete the device, as its row says; return the number of moved or deleted rows."""
    reporter = Reporter(job, "rows moved or deleted")
    device = Device.objects.with_counts().filter(pk=device_id).first()
    rows, total = 0, device.point_count if device else 0
    while done := _remove_some(device_id):
        rows += done
        reporter.report(rows, max(rows, total))
    return {"rows": rows}


def _remove_some(device_id: int) -> int:
    """Move or delete some rows; return how many, 0 at the end."""
    with transaction.atomic():
        rows = Device.objects.select_for_update()
        device = rows.exclude(removed_at=None).filter(pk=device_id).first()
        if device is None:
            return 0
        other = Device.objects.select_for_update(no_key=True).filter(pk=device.into_id or 0).first()
        if other is None:  # the account may have been deleted since the merge began
            return delete_some(device)
        return _move_some(device, other)


_KEY = "(p.device_id, p.recorded_at, p.lon, p.lat)"
_MOVE = f"""
WITH chunk AS MATERIALIZED (
  DELETE FROM tailrace_timeline_point WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM tailrace_timeline_point
    WHERE device_id = %(device)s ORDER BY recorded_at, lon, lat LIMIT %(limit)s))
  RETURNING *
), further AS MATERIALIZED (
  DELETE FROM tailrace_timeline_pointsource p USING chunk c
  WHERE {_KEY} = (c.device_id, c.recorded_at, c.lon, c.lat)
  RETURNING p.*
), known AS MATERIALIZED (
  SELECT c.recorded_at, c.lon, c.lat, c.import_id AS source, EXISTS (
      SELECT 1 FROM tailrace_timeline_import i WHERE i.id = p.import_id AND {MAY_BE_UNDONE}
    ) AS may_go
  FROM chunk c JOIN tailrace_timeline_point p
    ON {_KEY} = (%(into)s, c.recorded_at, c.lon, c.lat)
), added AS (
  INSERT INTO tailrace_timeline_point
    (device_id, recorded_at, lon, lat, import_id, altitude, accuracy, speed, course, file_order)
  SELECT %(into)s, recorded_at, lon, lat, import_id, altitude, accuracy, speed, course, file_order
  FROM chunk ORDER BY recorded_at, lon, lat
  ON CONFLICT DO NOTHING
), shared AS (
  INSERT INTO tailrace_timeline_pointsource (device_id, recorded_at, lon, lat, import_id)
  SELECT %(into)s, recorded_at, lon, lat, coalesce(source, {THE_DEVICE}) FROM known WHERE may_go
  UNION ALL
  SELECT %(into)s, recorded_at, lon, lat, import_id
  FROM further LEFT JOIN known USING (recorded_at, lon, lat) WHERE may_go IS NOT FALSE
  ON CONFLICT DO NOTHING
)
SELECT NULL, count(*), 0 FROM chunk
UNION ALL
SELECT coalesce(source, {THE_DEVICE}), count(*), count(*) FILTER (WHERE may_go)
FROM known GROUP BY source
UNION ALL
SELECT import_id, 0, -count(*) FROM further JOIN known USING (recorded_at, lon, lat)
WHERE NOT may_go GROUP BY import_id
"""
"""A point that both devices have stays once, with the sources of both, unless its first source
stays for good (see PointSource). The rows: the number of moved points, without a source; then by
source, the points of which it was the first source and is no longer, and the number of points of
which it became a further source."""


def _move_some(device: Device, other: Device) -> int:
    # The planner may have no statistics of the points: look each of them up by its key.
    execute("SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off")
    moved = 0
    for source, points, shared in query(_MOVE, device=device.pk, into=other.pk, limit=BATCH):
        if source is None:
            moved = points
        elif source == THE_DEVICE:
            device.live_points -= points
        else:
            Import.objects.filter(pk=source).update(
                inserted=F("inserted") - points,
                duplicates=F("duplicates") + points,
                shared=F("shared") + shared,
            )
    if moved := moved or _move_places(device, other) or _erase_events(device):
        device.save(update_fields=["live_points"])
        return int(moved)
    Import.objects.filter(device=device).update(device=other)
    other.live_points += device.live_points
    other.save(update_fields=["live_points"])
    device.delete()
    enqueue_naming(other.pk)
    return 0


_MOVE_PLACES = """
WITH chunk AS MATERIALIZED (
  DELETE FROM tailrace_timeline_place WHERE id = ANY(ARRAY(
    SELECT id FROM tailrace_timeline_place WHERE device_id = %(device)s LIMIT %(limit)s))
  RETURNING *
), added AS (
  INSERT INTO tailrace_timeline_place
    (device_id, cell_lat, cell_lon, name, country, time_zone, is_named)
  SELECT %(into)s, cell_lat, cell_lon, name, country, time_zone, is_named FROM chunk
  ON CONFLICT DO NOTHING
)
SELECT count(*) FROM chunk
"""


def _move_places(device: Device, other: Device) -> int:
    [(moved,)] = query(_MOVE_PLACES, device=device.pk, into=other.pk, limit=BATCH)
    return int(moved)


def delete_some(device: Device) -> int:
    """Delete an import, some points or places of the device, some personal data of its events, or
    at last the device itself; return how many rows, 0 at the end. Its row must be locked."""
    if row := device.imports.select_for_update().order_by("pk").first():
        return delete_import(row)
    if deleted := _delete_points(device) or _delete_places(device) or _erase_events(device):
        return deleted
    device.delete()
    return 0


def delete_import(row: Import) -> int:
    """Delete the import, but not its points. Jobs delete its file and its staged points."""
    if row.job_id is not None:
        cancel([row.job_id], reason="the account or the device was deleted")
    enqueue_discard(row.pk, row.storage_key)
    ImportPromoted.erase_some(row.pk, BATCH)
    return Import.objects.filter(pk=row.pk).delete()[0]


_DELETE = """
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {table} WHERE device_id = %(device)s ORDER BY recorded_at LIMIT %(limit)s))
"""
_TABLES = ("tailrace_timeline_pointsource", "tailrace_timeline_point")


def _delete_points(device: Device) -> int:
    for table in _TABLES:
        if deleted := execute(_DELETE.format(table=table), device=device.pk, limit=BATCH):
            return deleted
    return 0


def _delete_places(device: Device) -> int:
    places = Place.objects.filter(device=device).values_list("pk", flat=True)[:BATCH]
    return Place.objects.filter(pk__in=list(places)).delete()[0]


def _erase_events(device: Device) -> int:
    return PointsAdded.erase_some(device.pk, BATCH)
