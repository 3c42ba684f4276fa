"""Delete files whose depositions were deleted, or never submitted."""

from pydantic import BaseModel

from tailrace.domains.records.depositions.deletion import DELETE_FILES
from tailrace.domains.records.depositions.storage import files
from tailrace.domains.records.models import DepositionFile
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Retry, Skip


class DeleteFiles(Handler):
    """Delete these files, except files that belong to a deposition."""

    name = DELETE_FILES
    max_attempts = 10
    backoff = Backoff(60, 300, 3600)

    class Payload(BaseModel):
        keys: list[str]

    def handle(self, job: ClaimedJob) -> None:
        keys = set(job.payload.keys)
        keys -= set(DepositionFile.objects.filter(key__in=keys).values_list("key", flat=True))
        if not keys:
            raise Skip("all of these files belong to depositions")
        if not files.delete(*keys):
            raise Retry("the storage cannot delete files now")
