"""Promote an import: move its staged points into the timeline, chunk by chunk.

    grace ──► promoting ──► enriching

Each chunk is a range of blocks of the partition and has its own transaction, which also stores the
cursor. So a promotion that is killed continues after the last committed chunk. Readers see none of
the points until the last transaction sets `visible`. If a crash of the database emptied the
partition, the file is staged again.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction

from tailrace.db.query import database_now, execute, query
from tailrace.domains.timeline.event_types import ImportPromoted
from tailrace.domains.timeline.imports import staging
from tailrace.domains.timeline.imports.cleanup import discard_after_commit
from tailrace.domains.timeline.imports.locks import lock_device_of, lock_for_chunk
from tailrace.domains.timeline.imports.queues import ENRICH, STAGE, enqueue_step
from tailrace.domains.timeline.imports.steps import runs
from tailrace.domains.timeline.imports.waiting import reason_to_wait
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State
from tailrace.domains.timeline.points.sources import UNDOABLE
from tailrace.events.publish import publish
from tailrace.jobs.handler import ClaimedJob, Skip, Snooze

CHUNK = 10_000
"""Points per transaction."""
BUSY_SECONDS = 1


def promote(job: ClaimedJob, import_id: int) -> dict[str, int] | str:
    """Promote the import; return its numbers of points, or why it is staged again."""
    row = _begin(job, import_id)
    if staging.staged_count(row.pk) != row.staged:
        return _stage_again(row)
    _move_points(job, row)
    return _finish(job, row)


def _begin(job: ClaimedJob, import_id: int) -> Import:
    with transaction.atomic():
        lock_device_of(import_id)
        row = runs.begin(job, import_id, State.GRACE, State.PROMOTING)
        now = database_now()
        if row.state == State.GRACE:
            if row.promote_at is not None and row.promote_at > now:
                raise Snooze("the owner can still cancel the import", until=row.promote_at)
            if reason := reason_to_wait(row):
                raise Snooze(reason, seconds=BUSY_SECONDS)
            row.state = State.PROMOTING
            row.promotion_began_at = row.promotion_began_at or now
        row.save(update_fields=["state", "promotion_began_at", "run"])
    return row


def _stage_again(row: Import) -> str:
    """Enqueue the staging of the file again, because the partition lacks staged points."""
    with transaction.atomic():
        locked = runs.lock_run(row.pk, row.run, State.PROMOTING)
        if not _moved_points(locked):  # the owner may cancel
            locked.promotion_began_at = None
        locked.state = State.QUEUED
        locked.staged = locked.rejected = locked.bytes_read = locked.promoted_blocks = 0
        locked.inserted = locked.duplicates = 0
        locked.times_lost += 1
        locked.job_id = enqueue_step(STAGE, locked)
        locked.save()
    return "a crash of the database lost the staged points; the file is staged again"


def _moved_points(row: Import) -> bool:
    """Return whether points of the import may be in the timeline: moved since the file was staged,
    or by a promotion that began before that."""
    began, staged = row.promotion_began_at, row.parsing_since
    return bool(row.promoted_blocks or (began and staged and began < staged))


# In this order, as a request of the device inserts points: else the two could wait for each other.
_INSERT = """
INSERT INTO tailrace_timeline_point
  (device_id, recorded_at, lon, lat, import_id, altitude, accuracy, speed, course, file_order)
SELECT %(device)s, recorded_at, lon, lat, %(import_id)s, altitude, accuracy, speed, course,
  file_order
FROM {partition} WHERE ctid >= %(start)s::tid AND ctid < %(end)s::tid
ORDER BY recorded_at, lon, lat
ON CONFLICT DO NOTHING
"""
# A point that was known before: the import becomes a further source. The subquery looks each point
# up by its key, whatever the planner believes about the partition, which has no statistics.
_SHARE = f"""
WITH known AS MATERIALIZED (
  SELECT recorded_at, lon, lat, (
    SELECT import_id FROM tailrace_timeline_point p WHERE p.device_id = %(device)s
      AND p.recorded_at = s.recorded_at AND p.lon = s.lon AND p.lat = s.lat) AS first
  FROM {{partition}} s WHERE ctid >= %(start)s::tid AND ctid < %(end)s::tid
)
INSERT INTO tailrace_timeline_pointsource (device_id, recorded_at, lon, lat, import_id)
SELECT %(device)s, recorded_at, lon, lat, %(import_id)s FROM known
WHERE first <> %(import_id)s AND first IN ({UNDOABLE})
ON CONFLICT DO NOTHING
"""
_COUNT = "SELECT count(*) FROM {partition} WHERE ctid >= %(start)s::tid AND ctid < %(end)s::tid"


def _move_points(job: ClaimedJob, row: Import) -> None:
    blocks = _blocks(row)
    step = max(1, CHUNK * blocks // max(row.staged, 1))
    reporter = runs.Reporter(job, "points promoted")
    for start in range(row.promoted_blocks, blocks, step):
        _move_chunk(row, start, min(start + step, blocks))
        reporter.report(row.inserted + row.duplicates, row.staged)


def _blocks(row: Import) -> int:
    relation = f"'{staging.partition(row.pk)}'::regclass"
    [(blocks,)] = query(f"SELECT pg_relation_size({relation}) / current_setting('block_size')::int")
    return int(blocks)


def _move_chunk(row: Import, start: int, end: int) -> None:
    """Insert the points of these blocks and store the cursor in one transaction."""
    partition = staging.partition(row.pk)
    chunk = {"start": f"({start},0)", "end": f"({end},0)"}
    with transaction.atomic():
        # A crash loses the points together with their cursor, and the last transaction, which is
        # synchronous, makes all chunks durable.
        execute("SET LOCAL synchronous_commit = off")
        if not lock_for_chunk(row.device_id or 0, "KEY SHARE"):
            raise Skip("the device was deleted")
        locked = runs.lock_run(row.pk, row.run, State.PROMOTING)
        if locked.promoted_blocks != start:
            raise Skip("another worker has taken the import over")
        params = {"device": row.device_id, "import_id": row.pk, **chunk}
        [(count,)] = query(_COUNT.format(partition=partition), **chunk)
        inserted = execute(_INSERT.format(partition=partition), **params)
        shared = execute(_SHARE.format(partition=partition), **params) if inserted < count else 0
        row.promoted_blocks = end
        row.inserted = locked.inserted + inserted
        row.duplicates = locked.duplicates + count - inserted
        row.shared = locked.shared + shared
        row.save(update_fields=["promoted_blocks", "inserted", "duplicates", "shared"])


_INSERTED = """
SELECT count(*) FROM tailrace_timeline_point
WHERE device_id = %(device)s AND recorded_at BETWEEN %(first)s AND %(last)s
  AND import_id = %(import_id)s
"""


def _finish(job: ClaimedJob, row: Import) -> dict[str, int]:
    """Make all points visible, and enqueue the enrichment; return the numbers of points."""
    with transaction.atomic():
        locked = runs.lock_run(row.pk, row.run, State.PROMOTING)
        if locked.times_lost:  # points inserted before a crash were counted as duplicates after it
            [(inserted,)] = query(
                _INSERTED, device=row.device_id, import_id=row.pk,
                first=locked.first_at, last=locked.last_at,
            )  # fmt: skip
            locked.inserted, locked.duplicates = inserted, locked.staged - inserted
        now = database_now()
        locked.state, locked.visible, locked.promoted_at = State.ENRICHING, True, now
        locked.undo_until = now + timedelta(days=settings.IMPORT_UNDO_DAYS)
        locked.job_id = enqueue_step(ENRICH, locked, after=job.id)
        locked.save()
        publish(ImportPromoted.new_event(locked))
        discard_after_commit(locked)
    return {
        "inserted": locked.inserted,
        "duplicates": locked.duplicates,
        "rejected": locked.rejected,
    }
