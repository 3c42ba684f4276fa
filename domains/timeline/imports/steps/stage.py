"""Stage an import: parse its file and copy the points into its partition.

    queued ──► parsing ──► grace: the owner can check and cancel the import
                 │ ├─────► needs decision: the file is cut or broken; the points before are staged
                 │ ├─────► queued: the file has the points of several devices (see `split`)
                 │ └─────► failed: the file has no usable points

After a crash, the file is read again, and points that are already staged are skipped.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, BinaryIO

from django.conf import settings
from django.db import connection, transaction

from tailrace.db.query import database_now, query
from tailrace.domains.timeline.imports import cleanup, quotas, staging
from tailrace.domains.timeline.imports.files.memory import limited_memory
from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tailrace.domains.timeline.imports.files.parsing.tally import TagFilter, Tally, counts_text
from tailrace.domains.timeline.imports.files.reading import read_points
from tailrace.domains.timeline.imports.queues import PROMOTE, enqueue_step
from tailrace.domains.timeline.imports.steps import runs, split
from tailrace.domains.timeline.imports.storage import files
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State
from tailrace.domains.timeline.points.points import Point
from tailrace.jobs.handler import CancelRequested, ClaimedJob, Retry
from tailrace.web.accounts.time_zones import zone_of

ROWS_PER_COMMIT = 50_000


def stage(job: ClaimedJob, import_id: int) -> str:
    """Stage the import; return the label of its new state."""
    row = _begin(job, import_id)
    tally = Tally.at(row.created_at)
    tally.tag_filter = TagFilter.of(row.tags)
    try:
        error = _copy(job, row, tally)
    except CancelRequested:  # an operator has cancelled the job
        _end(row, State.CANCELLED, cleanup.BY_OPERATOR)
        raise
    except FileNotFoundError:
        if job.attempt < job.max_attempts:  # the storage may be unavailable temporarily
            raise Retry("the file is not in the storage") from None
        return _end(row, State.FAILED, "The file no longer exists.")
    # An import that was partly promoted before a crash must be read without error again. Otherwise
    # it fails, and its promoted points are undone.
    must_be_undone = error and row.promotion_began_at is not None and not row.accepts_part
    if not tally.accepted or must_be_undone:
        return _end(row, State.FAILED, error or _no_points_message(tally))
    if split.by_tags(row, tally):
        return stage(job, import_id)
    return _finish(row, tally, error)


def _begin(job: ClaimedJob, import_id: int) -> Import:
    with transaction.atomic():
        row = runs.begin(job, import_id, State.QUEUED, State.PARSING)
        if not row.staged or staging.staged_count(row.pk) != row.staged:
            staging.create_partition(row.pk)
            row.staged = 0
        row.state, row.parsing_since = State.PARSING, database_now()
        row.save(update_fields=["state", "run", "parsing_since", "staged"])
    return row


def _copy(job: ClaimedJob, row: Import, tally: Tally) -> str:
    """Copy the file's points into the partition; return the error in the file, or ""."""

    def record(staged: int) -> None:
        runs.record(
            row.pk, row.run, State.PARSING,
            staged=staged,
            rejected=tally.rejected.total(),
            bytes_read=min(file.tell(), row.size),
            tally=tally.as_json(),
            formats=", ".join(tally.formats)[:200],
        )  # fmt: skip

    most = settings.IMPORT_MAX_POINTS
    left = quotas.points_left_for_imports(row.user_id)
    if left is not None:
        most = min(most, left)
    with files.open(row.storage_key) as file:
        written_at = files.written_at(row.storage_key)
        points = _first_points(read_points(file, tally), most, tally)
        batches = _with_progress(job, points, file, row.size)
        try:
            with limited_memory():
                staging.stage(
                    row.pk, batches, connection,
                    on_commit=record, skip=row.staged, rows_per_commit=ROWS_PER_COMMIT,
                )  # fmt: skip
        except _TooManyPoints:
            return (
                "The file has more points than may be imported:"
                f" {most:,} were read, the rest was ignored."
            )
        except FileError as error:
            return error.with_advice()
        size = file.seek(0, 2)  # size of the open file, even if it was deleted
    changed = files.written_at(row.storage_key) not in (written_at, None)
    return "The file was changed while it was read." if changed or size != row.size else ""


class _TooManyPoints(FileError):
    """The limit of points is reached. The points before are committed, as after any FileError."""


def _first_points(batches: Iterator[list[Point]], most: int, tally: Tally) -> Iterator[list[Point]]:
    """Yield the first `most` points. Raises _TooManyPoints if there are more."""
    count = 0
    for batch in batches:
        if count + len(batch) > most:
            tally.accepted = most
            yield batch[: most - count]
            raise _TooManyPoints("too many points")
        count += len(batch)
        yield batch


def _with_progress(
    job: ClaimedJob, batches: Iterator[list[Point]], file: BinaryIO, size: int
) -> Iterator[list[Point]]:
    reporter = runs.Reporter(job, "bytes parsed", is_cancellable=True)
    for batch in batches:
        reporter.report(min(file.tell(), size), size)
        yield batch


def _no_points_message(tally: Tally) -> str:
    count = tally.rejected.total()
    if not count:
        return "The file contains no points."
    reasons = counts_text(tally.rejected)
    return f"None of the {count:,} points in the file can be used ({reasons})."


def _end(row: Import, state: State, error: str) -> str:
    """End the import as failed or cancelled; return the label of the state."""
    with transaction.atomic():
        cleanup.end(runs.lock_run(row.pk, row.run, State.PARSING), state, error)
    return state.label


def _finish(row: Import, tally: Tally, error: str) -> str:
    """Start the grace, at whose end the promotion is due, or wait for the owner's decision if the
    file has an error. Return the label of the new state."""
    values: dict[str, Any] = {**_summary(row), "tally": tally.as_json(), "error": error}
    values |= {"rejected": tally.rejected.total(), "bytes_read": row.size if not error else None}
    with transaction.atomic():
        now = database_now()
        locked = runs.lock_run(row.pk, row.run, State.PARSING)
        for name, value in values.items():
            if value is not None:
                setattr(locked, name, value)
        if error and not locked.accepts_part:
            locked.state, locked.job_id = State.NEEDS_DECISION, None
        else:  # promote_at is past if a crash lost the staged points during the promotion
            locked.state = State.GRACE
            grace_end = now + timedelta(seconds=settings.IMPORT_GRACE_SECONDS)
            locked.promote_at = locked.promote_at or grace_end
            locked.job_id = enqueue_step(PROMOTE, locked, due_at=locked.promote_at)
        locked.save()
    return State(locked.state).label


_SUMMARY = """
WITH distinct_points AS (
  SELECT DISTINCT recorded_at, lon, lat FROM {partition}
)
SELECT count(*) FROM distinct_points s
WHERE NOT EXISTS (
  SELECT 1 FROM tailrace_timeline_point p
  WHERE p.device_id = %(device)s AND p.recorded_at = s.recorded_at
    AND p.lon = s.lon AND p.lat = s.lat)
"""
_DAYS = """
SELECT count(*) OVER (), (recorded_at AT TIME ZONE %(zone)s)::date::text AS day, count(*)
FROM {partition} GROUP BY day ORDER BY day DESC LIMIT %(limit)s
"""
DAYS_KEPT = 60
"""Number of days, the newest ones, whose numbers of points are stored for the owner."""
_TIMES = "SELECT count(*), min(recorded_at), max(recorded_at) FROM {partition}"


def _summary(row: Import) -> dict[str, Any]:
    """Return the columns of the import that summarize its staged points: their number, times and
    days, and how many are already in the timeline."""
    partition = staging.partition(row.pk)
    first: datetime
    last: datetime
    [(staged, first, last)] = query(_TIMES.format(partition=partition))
    zone = str(zone_of(row.user))
    days = query(_DAYS.format(partition=partition), zone=zone, limit=DAYS_KEPT)
    [(new,)] = query(_SUMMARY.format(partition=partition), device=row.device_id)
    return {
        "staged": staged,
        "first_at": first,
        "last_at": last,
        "expected_duplicates": staged - new,
        "days": {"total": days[0][0], "newest": [[day, count] for _, day, count in days]},
    }
