"""Poll the list of breaches, and scan the monitored accounts when it has new ones."""

from collections.abc import Sequence
from typing import Any

from pydantic import AwareDatetime, BaseModel

from tailrace.domains.protection.services.scanning import feed
from tailrace.jobs.handler import ClaimedJob, Every, Handler

POLL_SECONDS = 300.0


class MonitoringPoll(Handler):
    """Read the new breaches, for accounts whose plans have monitoring."""

    name = "protection.monitoring_poll"
    schedule = Every(POLL_SECONDS)
    max_attempts = 2
    time_limit = 120

    def schedule_keys(self) -> Sequence[str]:
        """Return no key while the source is not configured."""
        return () if feed.SOURCE().why_not() else ("",)

    async def handle(self, job: ClaimedJob) -> Any:
        """Return the number of new breaches."""
        return {"new": await feed.poll()}


class MonitoringFanOut(Handler):
    """Enqueue scans of the accounts whose plans have monitoring, 500 accounts per job."""

    name = feed.FAN_OUT

    class Payload(BaseModel):
        """The accounts after the subscription `after`. Look-ups made since `since` are not
        repeated."""

        after: int = 0
        since: AwareDatetime

    def handle(self, job: ClaimedJob) -> Any:
        """Return the number of enqueued scans."""
        return {"scans": feed.fan_out(job.payload.after, job.payload.since)}
