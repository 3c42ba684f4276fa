"""The invariants of photos, gatherings and uploads."""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from tailrace.db.query import database_now
from tailrace.domains.photos.clustering.sweeping import inactive, inconsistent, unassigned
from tailrace.domains.photos.models import Photo, Upload
from tailrace.domains.photos.uploads.deletion import files
from tailrace.domains.photos.uploads.pictures import storage
from tailrace.jobs.runtime.invariant import Invariant

ABANDONED_AFTER = timedelta(hours=1)
"""An upload that is not finished by then will never be finished."""
KEY_LIFETIME = timedelta(days=7)
"""How long a repeated Idempotency-Key returns the photo that was uploaded with it."""


class PhotosSweep(Invariant):
    """Base of the invariants with the settings PHOTOS_SWEEP_SECONDS and PHOTOS_SWEEP_BATCH."""

    every = settings.PHOTOS_SWEEP_SECONDS
    limit = settings.PHOTOS_SWEEP_BATCH


class PhotosGather(PhotosSweep):
    """Each photo is clustered or unclusterable, or its next attempt is not due yet.

    Found: photos whose next attempt is due. Repaired: photos that were requeued.
    """

    name = "photos.photos_gather"
    found_by = unassigned.find_unassigned_photos
    repaired_by = unassigned.requeue_photos_for_clustering


class ActiveGatheringsGrow(PhotosSweep):
    """Each ACTIVE gathering got a photo within the last PHOTOS_FINALIZE_AFTER_MINUTES.

    Repaired: gatherings that were finalized.
    """

    name = "photos.active_gatherings_grow"
    found_by = inactive.find_inactive_gatherings
    repaired_by = inactive.finalize_inactive_gatherings


class GatheringsAreTheirPhotos(PhotosSweep):
    """The count, centroid and times of each gathering agree with its photos."""

    name = "photos.gatherings_are_their_photos"
    found_by = inconsistent.find_inconsistent_gatherings
    repaired_by = inconsistent.repair_gatherings


class FilesOfDeletedPhotosAreGone(Invariant):
    """The files of each deleted photo are deleted, or a job will delete them.

    Repaired: files for which a new job was enqueued.
    """

    name = "photos.files_of_deleted_photos_are_gone"
    every = 600
    found_by = files.find_lost
    repaired_by = files.enqueue_deletion


class OriginalsExpire(Invariant):
    """No original picture is kept longer than PHOTOS_ORIGINALS_RETENTION_DAYS. Small copies stay.

    Repaired: originals that were deleted.
    """

    name = "photos.originals_expire"
    every = 600
    limit = 500

    def find(self) -> Sequence[int]:
        days = settings.PHOTOS_ORIGINALS_RETENTION_DAYS
        if not days:
            return []
        expired = database_now() - timedelta(days=days)
        photos = Photo.objects.filter(original_deleted_at=None, uploaded_at__lt=expired)
        return list(photos.order_by("uploaded_at").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        photos = Photo.objects.select_for_update(skip_locked=True).filter(pk__in=violations)
        deleted = [
            id
            for id, key in photos.values_list("pk", "storage_key")
            if not storage.is_stored_here(key) or storage.delete_original(key)
        ]
        return Photo.objects.filter(pk__in=deleted).update(original_deleted_at=database_now())


class UploadsEnd(Invariant):
    """Each upload finished within an hour, and its Idempotency-Key has not expired.

    Repaired: uploads that were deleted; unfinished uploads are deleted with their files.
    """

    name = "photos.uploads_end"
    every = 600

    def find(self) -> Sequence[int]:
        now = database_now()
        ended = Q(photo=None) | Q(started_at__lt=now - KEY_LIFETIME)
        uploads = Upload.objects.filter(ended, started_at__lt=now - ABANDONED_AFTER)
        return list(uploads.order_by("started_at").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[int]) -> int:
        deleted = []
        for upload in Upload.objects.select_for_update(skip_locked=True).filter(pk__in=violations):
            key = upload.storage_key
            in_use = not key or Photo.objects.filter(storage_key=key).exists()
            if in_use or storage.delete(key):
                deleted.append(upload.pk)
        return Upload.objects.filter(pk__in=deleted).delete()[0]
