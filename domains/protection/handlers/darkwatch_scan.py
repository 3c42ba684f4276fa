"""Look up an account's watched values in breaches."""

from collections.abc import Mapping
from typing import Any

from tailrace.domains.protection.services.scanning.payload import SCAN, ScanPayload
from tailrace.domains.protection.services.scanning.scan import BACKOFF, RUNS, run_scan
from tailrace.jobs.handler import ClaimedJob, Handler


class DarkwatchScan(Handler):
    """Look up the watched values of an account in breaches, record exposures, and raise alerts."""

    name = SCAN
    Payload = ScanPayload
    fair = True
    concurrency = 50
    per_destination = 4
    """Concurrent scans of one account, so that a large account does not block the others."""
    max_attempts = RUNS
    backoff = BACKOFF
    request_permission = "tailrace_jobs.add_job"

    def payload_lane(self, payload: Mapping[str, Any]) -> str:
        """Return the id of the account."""
        return str(payload["account"])

    async def handle(self, job: ClaimedJob) -> Any:
        """See `services.scanning.scan`."""
        return await run_scan(job)
