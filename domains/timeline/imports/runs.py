"""One worker at a time works on an import: what it records is guarded by its run.

A run is named by the claim of its job. A worker that lost its claim, or whose import was cancelled,
changes nothing more: its next guarded update finds no row.
"""

from typing import Any

from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.outcomes import Skip


def run_of(job: ClaimedJob) -> str:
    """Return the name of this claim's run."""
    return f"{job.id}/{job.claim_no}"


def lock_run(import_id: int, run: str, state: State) -> Import:
    """Lock and return the import if this run still works on it, in that state; else raise Skip."""
    rows = Import.objects.select_for_update(no_key=True)
    row = rows.filter(pk=import_id, run=run, state=state).first()
    if row is None:
        raise Skip("the import was cancelled, or another worker has taken it over")
    return row


def record(import_id: int, run: str, during: State, **values: Any) -> None:
    """Update the import if this run still works on it, in that state; else raise Skip."""
    if not Import.objects.filter(pk=import_id, run=run, state=during).update(**values):
        raise Skip("the import was cancelled, or another worker has taken it over")
