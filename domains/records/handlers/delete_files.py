"""Delete files of depositions that are deleted."""

from pydantic import BaseModel

from domains.records.depositions import storage
from domains.records.depositions.deletion import DELETE_FILES
from jobs.backoff import Backoff
from jobs.handler import ClaimedJob, Handler
from jobs.outcomes import Retry


class DeleteFiles(Handler):
    """Delete the files of deleted depositions."""

    name = DELETE_FILES
    max_attempts = 10
    backoff = Backoff(60, 300, 3600)

    class Payload(BaseModel):
        keys: list[str]

    def handle(self, job: ClaimedJob) -> None:
        if not storage.delete(job.payload.keys):
            raise Retry("the storage cannot delete files now")
