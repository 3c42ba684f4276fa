"""What should be true of photos and gatherings; `sweeping` finds and repairs."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from domains.photos import intake, sweeping
from jobs.invariants import Invariant


class PhotosGather(Invariant):
    """A photo is clustered, waits for its next try, or is unclusterable.

    Found: photos whose try is due; repaired: those that were requeued.
    """

    name = "photos.photos_gather"
    every = settings.PHOTOS_SWEEP_SECONDS
    limit = settings.PHOTOS_SWEEP_BATCH

    def find(self) -> Sequence[Any]:
        return sweeping.find_unassigned_photos()

    def repair(self, found: Sequence[Any]) -> int:
        return sweeping.requeue_photos_for_clustering(found)


class ActiveGatheringsGrow(Invariant):
    """A photo has come to an ACTIVE gathering within PHOTOS_FINALIZE_AFTER_MINUTES.

    Repaired: those that were finalized.
    """

    name = "photos.active_gatherings_grow"
    every = settings.PHOTOS_SWEEP_SECONDS
    limit = settings.PHOTOS_SWEEP_BATCH

    def find(self) -> Sequence[Any]:
        return sweeping.find_inactive_gatherings()

    def repair(self, found: Sequence[Any]) -> int:
        return sweeping.finalize_inactive_gatherings(found)


class GatheringsAreTheirPhotos(Invariant):
    """A gathering's count, centroid and times are those of the photos that say they are in it."""

    name = "photos.gatherings_are_their_photos"
    every = settings.PHOTOS_SWEEP_SECONDS
    limit = settings.PHOTOS_SWEEP_BATCH

    def find(self) -> Sequence[Any]:
        return sweeping.find_untrue_gatherings()

    def repair(self, found: Sequence[Any]) -> int:
        return sweeping.repair_gatherings(found)


class UploadsEnd(Invariant):
    """An upload has made its photo within the hour, and is not older than an Idempotency-Key lasts.

    Repaired: those whose files, if nobody finished them, were removed.
    """

    name = "photos.uploads_end"
    every = 600

    def find(self) -> Sequence[Any]:
        return intake.left_behind(self.limit)

    def repair(self, found: Sequence[Any]) -> int:
        return intake.clear(found)
