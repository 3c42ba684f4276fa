"""Delete files of deleted reports, recordings and voices."""

from tailrace.domains.protection.files import storage
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Snooze

RETRY_SECONDS = 300


class DeleteFile(Handler):
    """Delete a file that nothing refers to any more; try again until it is deleted.

    The routing key is the id of a StoredFile.
    """

    name = storage.HANDLER
    max_attempts = 12
    backoff = Backoff(10, 60, 300, 3600)

    def handle(self, job: ClaimedJob) -> None:
        if not storage.delete(int(job.routing_key)):
            raise Snooze("the file cannot be deleted now", seconds=RETRY_SECONDS)
