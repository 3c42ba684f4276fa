"""Watch the list of breaches, and scan the accounts that are monitored when it grows."""

from collections.abc import Sequence
from typing import Any

from pydantic import AwareDatetime, BaseModel

from tailrace.domains.protection.scanning import feed
from tailrace.jobs.handler import ClaimedJob, Every, Handler

POLL_SECONDS = 300.0


class MonitoringPoll(Handler):
    """Read which breaches are new, for the accounts whose plans have monitoring."""

    name = "protection.monitoring_poll"
    schedule = Every(POLL_SECONDS)
    max_attempts = 2
    time_limit = 120

    def schedule_keys(self) -> Sequence[str]:
        """Return none while nothing could be scanned."""
        return () if feed.SOURCE().why_not() else ("",)

    async def handle(self, job: ClaimedJob) -> Any:
        """Return how many breaches are new."""
        return {"new": await feed.poll()}


class MonitoringFanOut(Handler):
    """Make the scans of the accounts whose plans have monitoring, some hundreds at a time."""

    name = feed.FAN_OUT

    class Payload(BaseModel):
        """The accounts after this subscription; what was looked up since then is up to date."""

        after: int = 0
        since: AwareDatetime

    def handle(self, job: ClaimedJob) -> Any:
        """Return how many scans there are, and the job of the next accounts."""
        return {"scans": feed.fan_out(job.payload.after, job.payload.since)}
