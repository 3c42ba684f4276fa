"""Enqueue the steps of an import. By its unique key, each step has one unfinished job at a time."""

from datetime import datetime

from tailrace.domains.timeline.models import Import
from tailrace.jobs.enqueue import enqueue

STAGE, PROMOTE, ENRICH = "timeline.stage", "timeline.promote", "timeline.enrich"
UNDO, DISCARD = "timeline.undo", "timeline.discard"


def enqueue_step(
    handler: str, location_import: Import, due_at: datetime | None = None, after: int | None = None
) -> int | None:
    """Enqueue this step of the import; return the job's id."""
    return enqueue(
        handler,
        {"import_id": location_import.pk},
        unique_key=str(location_import.pk),
        lane=str(location_import.user_id),
        due_at=due_at,
        after=after,
    )


def enqueue_discard(import_id: int, storage_key: str) -> int | None:
    """Enqueue a job that drops the import's staged points, and deletes its file unless
    `storage_key` is empty. The import's row may be deleted before the job runs.
    """
    return enqueue(
        DISCARD,
        {"import_id": import_id, "storage_key": storage_key},
        unique_key=f"{import_id} {storage_key}",
    )
