"""Undo an import: delete exactly the points that it added, chunk by chunk."""

from datetime import UTC, date, datetime, tzinfo

from django.db import OperationalError, transaction

from tailrace.db.limits import time_limits
from tailrace.db.query import database_now, query
from tailrace.domains.timeline.imports.queues import enqueue_discard
from tailrace.domains.timeline.imports.steps import runs
from tailrace.domains.timeline.models import Import, Place
from tailrace.domains.timeline.models.location_import import State
from tailrace.jobs.handler import ClaimedJob, Snooze

CHUNK = 10_000
BUSY_SECONDS = 1
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

COUNT_SECONDS = 3.0
"""Maximum time for which a page waits for the number of points."""


def undo(job: ClaimedJob, import_id: int) -> dict[str, int]:
    """Delete the points of the import; return how many."""
    row = _begin(job, import_id)
    reporter = runs.Reporter(job, "points removed")
    while _delete_chunk(row):
        reporter.report(row.removed, row.inserted)
    return {"removed": row.removed}


def _begin(job: ClaimedJob, import_id: int) -> Import:
    with transaction.atomic():
        row = runs.begin(job, import_id, State.UNDOING)
        others = Import.objects.filter(device=row.device_id, state=State.PROMOTING)
        if others.exists():
            raise Snooze("another import of the device is being promoted", seconds=BUSY_SECONDS)
        row.save(update_fields=["run"])
    return row


# A point that the device has sent since then belongs to the device, not to the import.
_DELETE = """
WITH chunk AS MATERIALIZED (
  SELECT device_id, recorded_at, lon, lat FROM tailrace_timeline_point
  WHERE device_id = %(device)s AND recorded_at >= %(cursor)s AND recorded_at <= %(last)s
    AND import_id = %(import_id)s
  ORDER BY recorded_at LIMIT %(limit)s
), deleted AS (
  DELETE FROM tailrace_timeline_point p USING chunk c
  WHERE (p.device_id, p.recorded_at, p.lon, p.lat) = (c.device_id, c.recorded_at, c.lon, c.lat)
    AND p.import_id = %(import_id)s
  RETURNING 1
)
SELECT (SELECT max(recorded_at) FROM chunk), (SELECT count(*) FROM deleted)
"""


def _delete_chunk(row: Import) -> bool:
    """Delete up to CHUNK points; return whether there may be more. When no points are left, set the
    import's state to undone."""
    with transaction.atomic():
        locked = runs.lock_run(row.pk, row.run, State.UNDOING)
        [(cursor, deleted)] = query(
            _DELETE, device=row.device_id, import_id=row.pk, limit=CHUNK,
            cursor=locked.undo_cursor or locked.first_at or BEGINNING,
            last=locked.last_at or database_now(),
        )  # fmt: skip
        row.removed = locked.removed = locked.removed + deleted
        if cursor is None:
            locked.state, locked.ended_at = State.UNDONE, database_now()
            locked.job_id = None
            if locked.promoted_at is None:  # its promotion was never finished
                locked.inserted = locked.removed
            Place.objects.filter(origin=locked).delete()
            enqueue_discard(locked.pk, locked.storage_key)
        else:
            locked.undo_cursor = cursor
        locked.save()
    return cursor is not None


_BY_DAY = """
SELECT (recorded_at AT TIME ZONE %(zone)s)::date AS day, count(*) FROM tailrace_timeline_point
WHERE device_id = %(device)s AND recorded_at BETWEEN %(first)s AND %(last)s
  AND import_id = %(import_id)s
GROUP BY day ORDER BY day DESC
"""


def points_by_day(row: Import, zone: tzinfo) -> list[tuple[date, int]] | None:
    """Return how many points of each day an undo of the import would remove, the last day first.

    None if counting takes longer than COUNT_SECONDS.
    """
    try:
        with time_limits(statement=COUNT_SECONDS, lock=COUNT_SECONDS):
            return query(
                _BY_DAY, zone=str(zone), device=row.device_id, import_id=row.pk,
                first=row.first_at, last=row.last_at,
            )  # fmt: skip
    except OperationalError:
        return None
