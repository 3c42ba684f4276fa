"""Look the values that an account watches up in breaches."""

from collections.abc import Mapping
from typing import Any

from tailrace.domains.protection.scanning.payload import SCAN, ScanPayload
from tailrace.domains.protection.scanning.scan import BACKOFF, RUNS, run_scan
from tailrace.jobs.handler import ClaimedJob, Handler


class DarkwatchScan(Handler):
    """Look up what an account watches, record where it was exposed, and raise alerts."""

    name = SCAN
    Payload = ScanPayload
    fair = True
    concurrency = 50
    per_destination = 4
    """Of an account: a big one leaves places to others."""
    max_attempts = RUNS
    backoff = BACKOFF
    request_permission = "tailrace_jobs.add_job"

    def payload_lane(self, payload: Mapping[str, Any]) -> str:
        """Return the account."""
        return str(payload["account"])

    async def handle(self, job: ClaimedJob) -> Any:
        """See `scanning.scan`."""
        return await run_scan(job)
