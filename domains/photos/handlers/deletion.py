"""Delete the files of deleted photos, and all photos of a user."""

from datetime import timedelta

from django.contrib.auth.models import User
from pydantic import BaseModel

from tailrace.db import clock
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.deletion import files
from tailrace.domains.photos.uploads.deletion.delete_photos import delete_some_of
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Snooze

RETRY_SECONDS = 300
TURN = timedelta(seconds=20)
"""Maximum duration of one call; the job is snoozed after it, so that other jobs can run."""


class DeleteFiles(Handler):
    """Delete the files of a deleted photo; retry until the storage has deleted them."""

    name = files.HANDLER
    max_attempts = 12
    backoff = Backoff(10, 60, 300, 3600)

    def handle(self, job: ClaimedJob) -> None:
        if not files.delete(int(job.routing_key)):
            raise Snooze("the files cannot be deleted now", seconds=RETRY_SECONDS)


class DeletePhotos(Handler):
    """Delete all photos that a user had at the time of the request, a hundred per transaction."""

    name = "photos.delete_photos"
    merge = "replace"
    max_attempts = 12
    backoff = Backoff(10, 60, 300, 3600)

    class Payload(BaseModel):
        user: int
        through: int
        """The highest id of the photos to delete."""

    def handle(self, job: ClaimedJob) -> None:
        until = clock.now() + TURN
        while delete_some_of(job.payload.user, job.payload.through):
            if clock.now() > until or job.shutting_down():
                raise Snooze("there are more photos to delete", seconds=0)


def delete_all(user: User) -> None:
    """Enqueue a job that deletes all photos that the user has now."""
    newest = Photo.objects.filter(user=user).order_by("-pk").values_list("pk", flat=True).first()
    if newest is not None:
        enqueue(DeletePhotos, {"user": user.pk, "through": newest}, unique_key=str(user.pk))
