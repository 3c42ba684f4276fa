"""The invariants of photos, gatherings and uploads."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from tailrace.domains.photos.deletion import files, originals
from tailrace.domains.photos.sweeping import inactive, inconsistent, unassigned
from tailrace.domains.photos.uploads import cleanup
from tailrace.jobs.maintenance.invariant import Invariant


class PhotosSweep(Invariant):
    """Base of the invariants with the settings PHOTOS_SWEEP_SECONDS and PHOTOS_SWEEP_BATCH."""

    every = settings.PHOTOS_SWEEP_SECONDS
    limit = settings.PHOTOS_SWEEP_BATCH


class PhotosGather(PhotosSweep):
    """Each photo is clustered or unclusterable, or its next attempt is not due yet.

    Found: photos whose next attempt is due. Repaired: photos that were requeued.
    """

    name = "photos.photos_gather"

    def find(self) -> Sequence[Any]:
        return unassigned.find_unassigned_photos()

    def repair(self, violations: Sequence[Any]) -> int:
        return unassigned.requeue_photos_for_clustering(violations)


class ActiveGatheringsGrow(PhotosSweep):
    """Each ACTIVE gathering got a photo within the last PHOTOS_FINALIZE_AFTER_MINUTES.

    Repaired: gatherings that were finalized.
    """

    name = "photos.active_gatherings_grow"

    def find(self) -> Sequence[Any]:
        return inactive.find_inactive_gatherings()

    def repair(self, violations: Sequence[Any]) -> int:
        return inactive.finalize_inactive_gatherings(violations)


class GatheringsAreTheirPhotos(PhotosSweep):
    """The count, centroid and times of each gathering agree with its photos."""

    name = "photos.gatherings_are_their_photos"

    def find(self) -> Sequence[Any]:
        return inconsistent.find_inconsistent_gatherings()

    def repair(self, violations: Sequence[Any]) -> int:
        return inconsistent.repair_gatherings(violations)


class FilesOfDeletedPhotosAreGone(Invariant):
    """The files of each deleted photo are deleted, or a job will delete them.

    Repaired: files for which a new job was enqueued.
    """

    name = "photos.files_of_deleted_photos_are_gone"
    every = 600

    def find(self) -> Sequence[Any]:
        return files.find_lost(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return files.enqueue_deletion(violations)


class OriginalsExpire(Invariant):
    """No original picture is kept longer than PHOTOS_ORIGINALS_RETENTION_DAYS. Small copies stay.

    Repaired: originals that were deleted.
    """

    name = "photos.originals_expire"
    every = 600
    limit = 500

    def find(self) -> Sequence[Any]:
        return originals.find_expired(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return originals.delete_originals(violations)


class UploadsEnd(Invariant):
    """Each upload finished within an hour, and its Idempotency-Key has not expired.

    Repaired: uploads that were deleted; unfinished uploads are deleted with their files.
    """

    name = "photos.uploads_end"
    every = 600

    def find(self) -> Sequence[Any]:
        return cleanup.find_ended_uploads(self.limit)

    def repair(self, violations: Sequence[Any]) -> int:
        return cleanup.delete_uploads(violations)
