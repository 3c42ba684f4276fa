"""End an import that is not to be promoted: cancelled by its owner or an operator, or failed."""

from tailrace.db.query import database_now
from tailrace.domains.timeline.imports.queues import UNDO, enqueue_discard, enqueue_step
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State

BY_OPERATOR = "An operator cancelled the import."


def end(row: Import, state: State, error: str = "") -> None:
    """End the import, whose row is locked, as cancelled or failed, and discard what it staged.

    If its promotion had begun before its staged points were lost in a crash of the database, some
    of its points are in the timeline, hidden: they are undone.
    """
    row.error = error or row.error
    if row.promotion_began_at is not None:
        row.state, row.undo_cursor = State.UNDOING, None
        row.job_id = enqueue_step(UNDO, row)
    else:
        row.state, row.ended_at, row.job_id = state, database_now(), None
        enqueue_discard(row.pk, row.storage_key)
    row.save(update_fields=["state", "error", "undo_cursor", "ended_at", "job_id"])
