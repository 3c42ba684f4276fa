"""Undo an import: remove it from the sources of its points, chunk by chunk.

A point that another import or the device has brought, too, stays: that source takes it over.
"""

from datetime import UTC, date, datetime, tzinfo

from django.db import OperationalError, transaction

from tailrace.db.limits import time_limits
from tailrace.db.query import database_now, query
from tailrace.domains.timeline.imports.locks import lock_for_chunk
from tailrace.domains.timeline.imports.queues import enqueue_discard
from tailrace.domains.timeline.imports.steps import runs
from tailrace.domains.timeline.models import Import, Place
from tailrace.domains.timeline.models.location_import import State
from tailrace.domains.timeline.points.sources import (
    KEPT,
    Span,
    hand_over,
    remove_first,
    remove_further,
)
from tailrace.jobs.handler import ClaimedJob

CHUNK = 10_000
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

COUNT_SECONDS = 3.0
"""Maximum time for which a page waits for the number of points."""


def undo(job: ClaimedJob, import_id: int) -> dict[str, int]:
    """Remove the import from the sources of its points; return how many points were deleted."""
    with transaction.atomic():
        row = runs.begin(job, import_id, State.UNDOING)
        row.save(update_fields=["run"])
    reporter = runs.Reporter(job, "points removed")
    while _remove_chunk(row):
        reporter.report(row.removed, row.inserted)
    return {"removed": row.removed}


def _remove_chunk(row: Import) -> bool:
    """Remove the import from up to CHUNK points: first as a further source, then as the first.
    Return whether there may be more; otherwise the import's state is now undone."""
    device = row.device_id or 0
    with transaction.atomic():
        lock_for_chunk(device, "UPDATE")
        locked = runs.lock_run(row.pk, row.run, State.UNDOING)
        start = locked.undo_cursor or locked.first_at or BEGINNING
        span = Span(device, row.pk, start, locked.last_at or database_now())
        more = _remove_further(locked, span) if locked.shared > 0 else _remove_first(locked, span)
        locked.save()
    row.removed, row.inserted = locked.removed, locked.inserted
    return more


def _remove_further(row: Import, span: Span) -> bool:
    count, cursor = remove_further(span, CHUNK)
    row.shared = max(row.shared - count, 0) if count else 0
    row.undo_cursor = cursor if row.shared else None  # the first sources begin at the first point
    return True


def _remove_first(row: Import, span: Span) -> bool:
    removed = remove_first(span, CHUNK)
    kept = hand_over(span.device, removed.kept)
    row.removed += removed.deleted
    row.inserted -= kept
    row.duplicates += kept
    row.undo_cursor = removed.cursor
    if removed.cursor is None:
        _finish(row)
    return removed.cursor is not None


def _finish(row: Import) -> None:
    row.state, row.ended_at, row.job_id = State.UNDONE, database_now(), None
    if row.promoted_at is None:  # its promotion was never finished
        row.inserted = row.removed
    Place.objects.filter(origin=row).delete()
    enqueue_discard(row.pk, row.storage_key)


_BY_DAY = f"""
SELECT (recorded_at AT TIME ZONE %(zone)s)::date AS day, count(*) FROM tailrace_timeline_point p
WHERE device_id = %(device)s AND recorded_at BETWEEN %(first)s AND %(last)s
  AND import_id = %(import_id)s AND NOT {KEPT}
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
