"""Preview an action on many jobs: their number, their queues and their times."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from django.db.models import QuerySet

from tailrace.db.limits import time_limits
from tailrace.db.query import query
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.models import Job
from tailrace.jobs.operations.batches import MAX_JOBS, Hidden, JobAction

SECONDS = 5.0
PIECE = 500
SAMPLE = 10
COLUMNS = ("pk", "handler", "event_id", "state", "created_at", "finished_at")


@dataclass(slots=True)
class Preview:
    """The effect that an action would have; `jobs` is at most MAX_JOBS."""

    jobs: int = 0
    more: bool = False
    """Whether more jobs match."""
    by_handler: list[tuple[str, int]] = field(default_factory=list)
    oldest: datetime | None = None
    newest: datetime | None = None
    """The earliest and the latest time at which one of the jobs finished or was created."""
    last_id: int = 0
    """The highest id: later jobs are not included."""
    sample: list[int] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    """The number of jobs that would not be changed, by reason."""
    dependents: int = 0
    """Jobs that were cancelled because one of these jobs did not complete, and would wait again."""


# Jobs whose unique key another unstarted job has. A replay runs only one job per key.
_WITH_TAKEN_KEY = """
SELECT count(*) FROM tailrace_jobs_job j
WHERE j.id = ANY(%(ids)s) AND j.unique_key IS NOT NULL AND EXISTS (
  SELECT 1 FROM tailrace_jobs_job k WHERE k.handler = j.handler AND k.unique_key = j.unique_key
    AND k.state IN ('waiting', 'pending'))
"""
_DEPENDENTS = f"SELECT count(*) FROM tailrace_jobs_job WHERE {dependents.CANCELLED_WITH_PARENT}"


def preview(action: JobAction, jobs: QuerySet[Job], hidden: Hidden | None = None) -> Preview:
    """Return the effect that the action would have on these jobs, newest first, without those that
    `hidden` returns. Raises OperationalError after SECONDS."""
    with time_limits(SECONDS, SECONDS):
        rows = list(islice(_visible(jobs, hidden), MAX_JOBS + 1))
        shown = Preview(more=len(rows) > MAX_JOBS)
        rows = rows[:MAX_JOBS]
        if rows:
            _describe(shown, rows)
        if rows and action.name == "replay":
            ids = [job.pk for job in rows]
            [(conflicts,)] = query(_WITH_TAKEN_KEY, ids=ids)
            [(shown.dependents,)] = query(_DEPENDENTS, ids=ids)
            if conflicts:
                shown.refused["an unstarted job has the same unique key"] = conflicts
    return shown


def _visible(jobs: QuerySet[Job], hidden: Hidden | None) -> Iterator[Job]:
    rows = jobs.order_by("-pk").only(*COLUMNS)
    rest = rows
    while piece := list(rest[:PIECE]):
        left_out = hidden(piece) if hidden else set()
        yield from (job for job in piece if job.pk not in left_out)
        rest = rows.filter(pk__lt=piece[-1].pk)


def _describe(shown: Preview, rows: Sequence[Job]) -> None:
    times = [job.finished_at or job.created_at for job in rows]
    shown.jobs = len(rows)
    shown.by_handler = Counter(job.handler for job in rows).most_common()
    shown.oldest, shown.newest = min(times), max(times)
    shown.last_id = rows[0].pk
    shown.sample = [job.pk for job in rows[:SAMPLE]]
