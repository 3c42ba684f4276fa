"""Poll backends: each job reads the notification log of one backend."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError

from tailrace.domains.builds.backends.client import BackendError, NotTried
from tailrace.domains.builds.sources.log_client import LogClient
from tailrace.domains.builds.sources.log_reader import LogReader
from tailrace.domains.builds.sources.poll_lease import LeaseNotAvailable, PollLease, PollLeaseLost
from tailrace.jobs.handler import Backoff, ClaimedJob, Every, Handler, LeaseLost, Skip, Snooze

log = structlog.get_logger(__name__)


class Poll(Handler):
    """Read the notification log of one backend from where the last read ended.

    The routing key is the backend's name in OBS_BACKEND_URL. If the backend fails, the job is
    snoozed until the poller's backoff is over, which counts no attempt.
    """

    name = "builds.poll"
    max_attempts = 3
    backoff = Backoff(5, 30)
    claim_timeout = 30
    priority = 0
    schedule = Every(1 if settings.OBS_LONG_POLL else settings.OBS_POLL_SECONDS)

    def schedule_keys(self) -> Sequence[str]:
        return tuple(settings.OBS_BACKENDS)

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        url = settings.OBS_BACKENDS.get(job.routing_key)
        if url is None:
            raise Skip(f"OBS_BACKEND_URL has no backend {job.routing_key!r}")
        with LogClient(job.routing_key, url) as client:
            try:
                lease = PollLease.acquire(job.routing_key, f"{job.id}.{job.claim_no}")
            except LeaseNotAvailable as reason:
                raise Skip(str(reason)) from None
            return _read_log(LogReader(client, lease, job.check_cancelled))


def _read_log(reader: LogReader) -> dict[str, Any]:
    lease = reader.lease
    try:
        more = reader.read()
    except NotTried as error:
        lease.release()
        raise Snooze(str(error), seconds=error.wait) from None
    except BackendError as error:
        wait = lease.fail(str(error))
        log.warning("poll.failed", backend=lease.name, error=str(error), retry_in=round(wait, 1))
        raise Snooze(str(error), seconds=wait) from None
    except PollLeaseLost as error:
        raise LeaseLost(str(error)) from None
    except BaseException:
        with suppress(DatabaseError):
            lease.release()
        raise
    lease.release()
    if more:
        raise Snooze(f"read {reader.events} events; the log has more", seconds=0)
    return {"events": reader.events, "pages": reader.pages, "next": lease.next_number}
