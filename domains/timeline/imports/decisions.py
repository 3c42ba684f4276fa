"""What the owner decides: cancel, promote now, promote the part before an error, undo.

Each locks the import's row, as the workers do at the beginning and the end of a step, so that one
of two who want different things at the same moment is refused, with the reason.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.timeline.imports import endings
from tailrace.domains.timeline.imports.errors import NotNow
from tailrace.domains.timeline.imports.queues import PROMOTE, UNDO, enqueue_step
from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.location_import import CANCELLABLE, PROMOTED, State
from tailrace.jobs.operations import cancel as jobs_cancel
from tailrace.jobs.operations import retry as jobs_retry

BEING_PROMOTED = "its points are being added to the timeline; undo it when that is done"
WHY_NOT_CANCELLED = {
    State.RECEIVING: "the file is still being stored; try again in a moment",
    State.PROMOTING: BEING_PROMOTED,
    State.ENRICHING: "it has been promoted; undo it instead",
    State.COMPLETED: "it has been promoted; undo it instead",
    State.CANCELLED: "it is cancelled already",
    State.FAILED: "it has failed: nothing of it is in the timeline",
    State.UNDOING: "it is being undone",
    State.UNDONE: "it has been undone",
}


def cancel(import_id: int) -> Import:
    """Cancel an import before its promotion: no point of it reaches the timeline.

    Raises NotNow.
    """
    with transaction.atomic():
        row = _lock(import_id)
        if not may_cancel(row):
            raise NotNow(WHY_NOT_CANCELLED.get(State(row.state), BEING_PROMOTED))
        if row.job_id is not None:
            jobs_cancel.cancel([row.job_id], reason="the import was cancelled")
        endings.end(row, State.CANCELLED)
    return row


def promote_now(import_id: int) -> Import:
    """End the grace of an import, or accept the part of its file that could be read.

    Raises NotNow.
    """
    with transaction.atomic():
        row = _lock(import_id)
        if row.state == State.NEEDS_DECISION:
            row.accepts_part = True
        elif row.state != State.GRACE:
            raise NotNow(f"only an import that is ready can be promoted; it is {_label(row)}")
        row.state, row.promote_at = State.GRACE, database_now()
        row.job_id = enqueue_step(PROMOTE, row)  # of the grace: merged into its job
        row.save(update_fields=["state", "promote_at", "job_id", "accepts_part"])
        if row.job_id is not None:
            jobs_retry.retry_now([row.job_id])
    return row


def undo(import_id: int) -> Import:
    """Hide the points that the import brought at once, and let a job delete them.

    Raises NotNow.
    """
    with transaction.atomic():
        row = _lock(import_id)
        check_undo(row)
        Device.objects.select_for_update(no_key=True).filter(pk=row.device_id).first()
        row.state, row.visible, row.undo_cursor, row.ended_at = State.UNDOING, False, None, None
        row.job_id = enqueue_step(UNDO, row)
        row.save(update_fields=["state", "visible", "undo_cursor", "ended_at", "job_id"])
    return row


def may_cancel(row: Import) -> bool:
    """Return whether the import can be cancelled: its promotion has not begun, not even before a
    crash after which its file is staged again."""
    return row.state in CANCELLABLE and row.promotion_began_at is None


def check_undo(row: Import) -> None:
    """Raise NotNow if the import cannot be undone."""
    if row.state not in PROMOTED:
        raise NotNow(f"only a promoted import can be undone; it is {_label(row)}")
    if not may_undo(row):
        days = settings.IMPORT_UNDO_DAYS
        raise NotNow(f"it was promoted more than {days} days ago (IMPORT_UNDO_DAYS)")


def may_undo(row: Import, now: datetime | None = None) -> bool:
    """Return whether the import is promoted and within IMPORT_UNDO_DAYS."""
    if row.state not in PROMOTED or row.promoted_at is None:
        return False
    return (now or database_now()) <= row.promoted_at + timedelta(days=settings.IMPORT_UNDO_DAYS)


def _lock(import_id: int) -> Import:
    return Import.objects.select_for_update(no_key=True).get(pk=import_id)


def _label(row: Import) -> str:
    return str(State(row.state).label).lower()
