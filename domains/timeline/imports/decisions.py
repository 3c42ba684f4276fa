"""The owner's decisions: cancel, promote now, promote the part before an error, undo.

Each decision locks the import's row, as workers do at the beginning and the end of a step. So of
two conflicting changes at the same time, the second fails with a reason.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from tailrace.db.query import database_now
from tailrace.domains.timeline.imports import cleanup
from tailrace.domains.timeline.imports.locks import lock_device_of
from tailrace.domains.timeline.imports.queues import PROMOTE, UNDO, enqueue_step
from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.location_import import CANCELLABLE, PROMOTED, State
from tailrace.jobs.operations import cancel as jobs_cancel
from tailrace.jobs.operations import retry as jobs_retry

BEING_PROMOTED = "its points are being added to the timeline; undo the import after that"
CANCEL_ERRORS = {
    State.RECEIVING: "the file is still being stored; try again in a moment",
    State.PROMOTING: BEING_PROMOTED,
    State.ENRICHING: "the import was promoted; undo it instead",
    State.COMPLETED: "the import was promoted; undo it instead",
    State.CANCELLED: "the import is already cancelled",
    State.FAILED: "the import has failed; none of its points are in the timeline",
    State.UNDOING: "the import is being undone",
    State.UNDONE: "the import was undone",
}


class NotNow(Exception):
    """The state of the import does not allow the decision; the message states the reason."""


def cancel(import_id: int) -> Import:
    """Cancel an import before its promotion: no point of it reaches the timeline.

    Raises NotNow.
    """
    with transaction.atomic():
        row = _lock(import_id)
        if not may_cancel(row):
            raise NotNow(CANCEL_ERRORS.get(State(row.state), BEING_PROMOTED))
        if row.job_id is not None:
            jobs_cancel.cancel([row.job_id], reason="the import was cancelled")
        cleanup.end(row, State.CANCELLED)
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
            raise NotNow(
                f"only an import that is ready can be promoted; this import is {_label(row)}"
            )
        row.state, row.promote_at = State.GRACE, database_now()
        row.job_id = enqueue_step(PROMOTE, row)  # merged into the waiting job
        row.save(update_fields=["state", "promote_at", "job_id", "accepts_part"])
        if row.job_id is not None:
            jobs_retry.retry_now([row.job_id])
    return row


def undo(import_id: int) -> Import:
    """Hide the points that only the import has, and enqueue a job that removes the import from the
    sources of its points.

    Raises NotNow.
    """
    with transaction.atomic():
        lock_device_of(import_id)
        row = _lock(import_id)
        check_undo(row)
        row.state, row.visible, row.undo_cursor, row.ended_at = State.UNDOING, False, None, None
        row.job_id = enqueue_step(UNDO, row)
        row.save(update_fields=["state", "visible", "undo_cursor", "ended_at", "job_id"])
    return row


def may_cancel(row: Import) -> bool:
    """Return whether the import can be cancelled: its promotion must not have begun, also not
    before a crash after which the file was staged again."""
    return row.state in CANCELLABLE and row.promotion_began_at is None


def check_undo(row: Import) -> None:
    """Raise NotNow if the import cannot be undone."""
    if row.state not in PROMOTED:
        raise NotNow(f"only a promoted import can be undone; this import is {_label(row)}")
    if not may_undo(row):
        days = _undo_time(row).days
        raise NotNow(f"the import was promoted more than {days} days ago (IMPORT_UNDO_DAYS)")
    changing = Q(pk=row.device_id, removed_at__isnull=False) | Q(into=row.device_id)
    if Device.objects.filter(changing).exists():
        raise NotNow("its device is being merged or deleted; try again after that")


def may_undo(row: Import, now: datetime | None = None) -> bool:
    """Return whether the import is promoted, and was promoted within IMPORT_UNDO_DAYS."""
    if row.state not in PROMOTED or row.promoted_at is None:
        return False
    return (now or database_now()) <= row.promoted_at + _undo_time(row)


def _undo_time(row: Import) -> timedelta:
    """Return for how long after its promotion the import can be undone: the setting of then."""
    if row.undo_until and row.promoted_at:
        return row.undo_until - row.promoted_at
    return timedelta(days=settings.IMPORT_UNDO_DAYS)


def _lock(import_id: int) -> Import:
    return Import.objects.select_for_update(no_key=True).get(pk=import_id)


def _label(row: Import) -> str:
    return str(State(row.state).label).lower()
