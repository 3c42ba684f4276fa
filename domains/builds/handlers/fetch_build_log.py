"""Fetch the end of the log of a failed build, for the mails about it."""

from tailrace.db import clock
from tailrace.domains.builds.backends.build_log import log_tail
from tailrace.domains.builds.backends.client import BackendError, NotFound
from tailrace.domains.builds.backends.log_tails import has_log
from tailrace.domains.builds.backends.metadata import InvalidName
from tailrace.domains.builds.backends.origin import reporter_of
from tailrace.domains.builds.models import BuildLogTail
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Retry, Skip


class FetchBuildLog(Handler):
    """Fetch and store the end of the log of a failed build, or the reason why it cannot be fetched.
    The first mail about the event creates the job."""

    name = "builds.fetch_build_log"
    max_attempts = 2
    backoff = Backoff(5)
    time_limit = 45

    def handle(self, job: ClaimedJob) -> dict[str, int]:
        if job.event is None or not has_log(job.event):
            raise Skip("the build log of this event cannot be requested from a backend")
        try:
            build = job.event.payload
            names = (build.project, build.package, build.repository, build.arch)
            text, problem = log_tail(reporter_of(job.event), *(name or "" for name in names)), ""
        except (NotFound, InvalidName):
            text, problem = "", "the backend has no such log"
        except BackendError as error:
            if job.attempt < self.max_attempts:
                raise Retry(str(error)) from error
            text, problem = "", "the backend did not send it"
        BuildLogTail.objects.filter(event=job.event.id).update(
            text=text, problem=problem, fetched_at=clock.now()
        )
        return {"characters": len(text)}
