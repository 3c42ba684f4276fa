"""Guard the updates of an import, so that only one worker at a time changes it.

A run is one claim of the import's job. If a worker lost its claim, or the import was cancelled, the
next guarded update of the worker finds no row, and raises Skip.
"""

import time
from typing import Any

from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State
from tailrace.jobs.handler import ClaimedJob, Skip, Snooze

REPORT_SECONDS = 1.0
"""Interval in which jobs record their progress."""


def begin(job: ClaimedJob, import_id: int, *states: State) -> Import:
    """Lock and return the import if it is in one of these states; otherwise raise Skip. The caller
    saves its `run`, which is now this claim."""
    rows = Import.objects.select_for_update(no_key=True)
    row = rows.filter(pk=import_id, state__in=states).first()
    if row is None:
        raise Skip(f"there is no import to {job.handler.name.removeprefix('timeline.')}")
    row.run = f"{job.id}/{job.claim_no}"
    return row


def lock_run(import_id: int, run: str, state: State) -> Import:
    """Lock and return the import if it still has this run and this state; otherwise raise Skip."""
    rows = Import.objects.select_for_update(no_key=True)
    row = rows.filter(pk=import_id, run=run, state=state).first()
    if row is None:
        raise Skip("the import was cancelled, or another worker has taken the import over")
    return row


def record(import_id: int, run: str, during: State, **values: Any) -> None:
    """Update the import if it still has this run and this state; otherwise raise Skip."""
    if not Import.objects.filter(pk=import_id, run=run, state=during).update(**values):
        raise Skip("the import was cancelled, or another worker has taken the import over")


class Reporter:
    """Reports the progress of a job, which is snoozed when its worker shuts down."""

    def __init__(self, job: ClaimedJob, note: str, is_cancellable: bool = False) -> None:
        self._job, self._note, self._is_cancellable = job, note, is_cancellable
        self._due = time.monotonic()

    def report(self, done: int, total: int) -> None:
        """Record the progress, and check for a cancellation, once in REPORT_SECONDS. Raises Snooze
        if the worker is shutting down, or CancelRequested."""
        if time.monotonic() >= self._due:
            if self._is_cancellable:
                self._job.check_cancelled()
            self._job.progress(done, total, self._note)
            self._due = time.monotonic() + REPORT_SECONDS
        check_shutdown(self._job)


def check_shutdown(job: ClaimedJob) -> None:
    if job.shutting_down():
        raise Snooze("the worker is shutting down", seconds=0)
