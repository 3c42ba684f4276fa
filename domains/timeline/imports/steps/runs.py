"""Guard the updates of an import, so that only one worker at a time changes it.

A run is one claim of the import's job. If a worker lost its claim, or the import was cancelled, the
next guarded update of the worker finds no row, and raises Skip.
"""

from typing import Any

from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State
from tailrace.jobs.handler import ClaimedJob, Skip


def run_of(job: ClaimedJob) -> str:
    """Return the name of this claim's run."""
    return f"{job.id}/{job.claim_no}"


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
