"""The invariants of photos, gatherings and uploads."""

from django.conf import settings

from tailrace.domains.photos.clustering.sweeping import inactive, inconsistent, unassigned
from tailrace.domains.photos.uploads import cleanup
from tailrace.domains.photos.uploads.deletion import files, originals
from tailrace.jobs.runtime.invariant import Invariant


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
    found_by = originals.find_expired
    repaired_by = originals.delete_originals


class UploadsEnd(Invariant):
    """Each upload finished within an hour, and its Idempotency-Key has not expired.

    Repaired: uploads that were deleted; unfinished uploads are deleted with their files.
    """

    name = "photos.uploads_end"
    every = 600
    found_by = cleanup.find_ended_uploads
    repaired_by = cleanup.delete_uploads
