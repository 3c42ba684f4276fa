"""Request the pull of a source at its scheduled times."""

from pydantic import BaseModel

from tailrace.domains.records.sources.requests import NotActive, request_pull
from tailrace.jobs.handler import ClaimedJob, Handler, Skip


class RequestSource(Handler):
    """Request that a source is read. Each active source has a schedule of this handler."""

    name = "records.request_source"

    class Payload(BaseModel):
        """The source's id."""

        source: int

    def handle(self, job: ClaimedJob) -> None:
        try:
            request_pull(job.payload.source)
        except NotActive as error:
            raise Skip(str(error)) from None
