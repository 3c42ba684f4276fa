"""Delete the files of deleted photos: one FileDeletion row and one job for each photo.

The row is written in the transaction that deletes the photo. The job is retried until it has
deleted the files, and then deletes the row. The sweeper enqueues a job for rows without one.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from tailrace.db.query import database_now, query
from tailrace.domains.photos.models import FileDeletion
from tailrace.domains.photos.uploads.pictures import storage
from tailrace.jobs.enqueue import enqueue_many

HANDLER = "photos.delete_files"
LATE_AFTER = timedelta(minutes=10)
"""A FileDeletion row older than this may have lost its job."""


def delete_after_commit(storage_keys: Iterable[str]) -> None:
    """Enqueue, in the caller's transaction, the deletion of the files that are stored here."""
    rows = FileDeletion.objects.bulk_create(
        FileDeletion(storage_key=key) for key in storage_keys if storage.is_stored_here(key)
    )
    enqueue_deletion([row.pk for row in rows])


def delete(id: int) -> bool:
    """Delete the files of a FileDeletion row, then the row; return False if the storage failed."""
    row = FileDeletion.objects.filter(pk=id).first()
    if row and not storage.delete(row.storage_key):
        return False
    if row:
        row.delete()
    return True


def enqueue_deletion(ids: Sequence[int]) -> int:
    """Enqueue a job for each FileDeletion row that has no waiting job; return how many are new."""
    keys = [str(id) for id in ids]
    return enqueue_many(HANDLER, [{"routing_key": key, "unique_key": key} for key in keys])


# Two subqueries, because each state set has its own partial index.
_LOST = """
SELECT d.id FROM tailrace_photos_filedeletion d
WHERE d.requested_at < %(before)s
  AND (SELECT j.id FROM tailrace_jobs_job j WHERE j.handler = %(handler)s
       AND j.unique_key = d.id::text
       AND j.state IN ('waiting', 'pending') LIMIT 1) IS NULL
  AND (SELECT j.id FROM tailrace_jobs_job j WHERE j.handler = %(handler)s
       AND j.unique_key = d.id::text
       AND j.state = 'running' LIMIT 1) IS NULL
ORDER BY d.id LIMIT %(limit)s
"""


def find_lost(limit: int) -> list[int]:
    """Return the ids of FileDeletion rows whose job was deleted or has failed."""
    before = database_now() - LATE_AFTER
    return [id for (id,) in query(_LOST, before=before, handler=HANDLER, limit=limit)]
