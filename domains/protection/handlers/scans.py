"""Look up watched values in breaches: by the schedules of plans, and for new breaches."""

from collections.abc import Sequence
from typing import Any

from pydantic import AwareDatetime, BaseModel

from tailrace.domains.protection.handlers.account_handler import AccountHandler
from tailrace.domains.protection.services.scanning import feed
from tailrace.domains.protection.services.scanning.payload import SCAN, ScanPayload
from tailrace.domains.protection.services.scanning.scan import BACKOFF, RUNS, run_scan
from tailrace.jobs.handler import ClaimedJob, Every, Handler


class DarkwatchScan(AccountHandler):
    """Look up the watched values of an account in breaches, record exposures, and raise alerts."""

    name = SCAN
    plan_title = "Dark-web scan"
    Payload = ScanPayload
    concurrency = 50
    per_destination = 4
    """Concurrent scans of one account, so that a large account does not block the others."""
    max_attempts = RUNS
    backoff = BACKOFF
    time_limit = 600

    async def handle(self, job: ClaimedJob) -> Any:
        return await run_scan(job)


class MonitoringPoll(Handler):
    """Read the new breaches, for accounts whose plans have monitoring."""

    name = "protection.monitoring_poll"
    schedule = Every(300)
    max_attempts = 2
    time_limit = 120

    def schedule_keys(self) -> Sequence[str]:
        """Return no key while the source is not configured."""
        return () if feed.SOURCE().why_not() else ("",)

    async def handle(self, job: ClaimedJob) -> Any:
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
        return {"scans": feed.fan_out(job.payload.after, job.payload.since)}
