"""Delete files of photos that are gone: a row for each, and a job that is retried until it is done.

The row is written in the transaction that deletes the photo. The job deletes it after the files;
the sweeper makes a job for rows without one.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from tailrace.db.query import database_now, query
from tailrace.domains.photos.models import FileDeletion
from tailrace.domains.photos.uploads import storage
from tailrace.jobs.enqueue import enqueue_many

HANDLER = "photos.delete_files"
LATE_AFTER = timedelta(minutes=10)
"""Files that are not deleted by then may have lost their job."""


def delete_after_commit(storage_keys: Iterable[str]) -> None:
    """Let a job delete the pictures with these keys, as far as they are stored here."""
    rows = FileDeletion.objects.bulk_create(
        FileDeletion(storage_key=key) for key in storage_keys if storage.is_stored_here(key)
    )
    enqueue_deletion([row.pk for row in rows])


def delete(id: int) -> bool:
    """Delete the files of one row, then the row; return False if the storage has failed."""
    row = FileDeletion.objects.filter(pk=id).first()
    if row is None:
        return True
    if not storage.delete(row.storage_key):
        return False
    row.delete()
    return True


def enqueue_deletion(ids: Sequence[int]) -> int:
    """Enqueue a job for each row, unless one waits; return how many were new."""
    keys = [str(id) for id in ids]
    return enqueue_many(HANDLER, [{"routing_key": key, "unique_key": key} for key in keys])


# As two questions, since each has its index.
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
    """Return the ids of rows whose job is gone, or has failed."""
    before = database_now() - LATE_AFTER
    return [id for (id,) in query(_LOST, before=before, handler=HANDLER, limit=limit)]
