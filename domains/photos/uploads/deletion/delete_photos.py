"""Delete photos: their rows, files and jobs, their data in events, and their part in gatherings.

    lock the cells ──► lock the gatherings ──► cancel jobs, erase events ──► publish the deletion
      ──► delete the rows ──► compute the gatherings' figures again
      ──► (after the commit) delete the files

All steps but the last share one transaction. FileDeletion rows and jobs delete the files.
"""

from collections.abc import Sequence

from django.db import transaction

from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.clustering.cluster_photos import HANDLER, lock_cells
from tailrace.domains.photos.clustering.sweeping import inconsistent
from tailrace.domains.photos.event_types import PlacesRequested
from tailrace.domains.photos.models import Photo, Upload
from tailrace.domains.photos.uploads.create_photo import SOURCE, source_id
from tailrace.domains.photos.uploads.deletion import files
from tailrace.domains.photos.uploads.deletion.announce import publish_deleted
from tailrace.events.models import Event
from tailrace.events.privacy.erase import erase
from tailrace.jobs.operations.cancel import cancel

MAX_PHOTOS = 100
"""Photos per transaction."""


def delete_photos(ids: Sequence[int], user_id: int) -> list[int]:
    """Delete the given photos that belong to the user; return the ids of the deleted photos. A
    gathering with too few photos left is dissolved. Raises ValueError for more than MAX_PHOTOS."""
    if len(ids) > MAX_PHOTOS:
        raise ValueError(f"{len(ids)} photos; at most {MAX_PHOTOS} can be deleted at once")
    with transaction.atomic():
        rows = Photo.objects.filter(pk__in=ids, user=user_id).order_by("pk")
        list(rows.filter(state=Photo.State.UNPLACED).select_for_update())  # blocks place_photos
        placed = rows.exclude(state=Photo.State.UNPLACED)
        lock_cells(placed.values_list("cell", flat=True))  # blocks clustering
        gatherings = {id for id in rows.values_list("gathering", flat=True) if id}
        inconsistent.lock_gatherings(gatherings)
        photos = dict(rows.select_for_update().values_list("pk", "storage_key"))
        deleted = list(photos)
        files.delete_after_commit(photos.values())
        events = erase(SOURCE, [source_id(id) for id in deleted], keep=["photo"])
        _cancel_jobs(deleted, events)
        publish_deleted(photos, events)
        Photo.objects.filter(pk__in=deleted).delete()
        inconsistent.repair_gatherings(sorted(gatherings))
    return deleted


def delete_some_of(user_id: int, through: int | None = None) -> int:
    """Delete up to MAX_PHOTOS photos of the user, with ids up to `through`; return how many."""
    photos = Photo.objects.filter(user=user_id)
    if through is not None:
        photos = photos.filter(pk__lte=through)
    ids = list(photos.order_by("uploaded_at").values_list("pk", flat=True)[:MAX_PHOTOS])
    return len(delete_photos(ids, user_id))


def delete_uploads_of(user_id: int) -> int:
    """Delete up to MAX_PHOTOS Upload rows of the user, and the files of unfinished uploads, which
    then fail; return the number of rows."""
    with transaction.atomic():
        uploads = Upload.objects.select_for_update().filter(user=user_id)[:MAX_PHOTOS]
        unfinished = [upload for upload in uploads if upload.photo_id is None]
        files.delete_after_commit([upload.storage_key for upload in unfinished])
        return Upload.objects.filter(pk__in=[upload.pk for upload in uploads]).delete()[0]


def erase_requests_of(user_id: int) -> int:
    """Erase up to MAX_PHOTOS unanswered location requests of the user; return their number."""
    events = Event.objects.filter(
        subject=f"user/{user_id}", type=PlacesRequested.name, payload__has_key="photos"
    )
    ids = list(events.values_list("source_id", flat=True)[:MAX_PHOTOS])
    return len(erase(SOURCE, ids, keep=["user_id"]))


_JOBS = """
SELECT id FROM tailrace_jobs_job
WHERE event_id = ANY(%(events)s::bigint[]) AND state IN ('waiting', 'pending', 'running')
UNION
SELECT id FROM tailrace_jobs_job
WHERE handler = %(handler)s AND unique_key = ANY(%(photos)s::text[])
  AND state IN ('waiting', 'pending')
"""


def _cancel_jobs(photos: Sequence[int], events: Sequence[int]) -> None:
    arrays = {"events": number_array(events), "photos": number_array(photos)}
    if rows := query(_JOBS, handler=HANDLER, **arrays):
        cancel(sorted(id for (id,) in rows), reason="the photo was deleted")
