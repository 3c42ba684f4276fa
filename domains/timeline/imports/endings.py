"""End an import without promotion: cancelled by its owner or an operator, or failed."""

from tailrace.db.query import database_now
from tailrace.domains.timeline.imports.queues import UNDO, enqueue_discard, enqueue_step
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State

BY_OPERATOR = "An operator cancelled the import."


def end(row: Import, state: State, error: str = "") -> None:
    """End the import as cancelled or failed, and discard its staged points. Its row must be locked.

    If its promotion had begun before a crash of the database lost its staged points, some hidden
    points are already in the timeline. Then the import is undone instead.
    """
    row.error = error or row.error
    if row.promotion_began_at is not None:
        row.state, row.undo_cursor = State.UNDOING, None
        row.job_id = enqueue_step(UNDO, row)
    else:
        row.state, row.ended_at, row.job_id = state, database_now(), None
        enqueue_discard(row.pk, row.storage_key)
    row.save(update_fields=["state", "error", "undo_cursor", "ended_at", "job_id"])
