from datetime import datetime, timedelta

from tailrace.db.query import database_now
from tailrace.jobs.engine.maintenance.workers.code_version import code_version
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.queues.other_code import differs_since, workers_of_other_code
from tailrace.jobs.platform.inspection.queues.stats import Worker
from tailrace.jobs.platform.inspection.recent import Recent
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts, Link

DEPLOY_SECONDS = 600
"""How long a deploy may take, during which workers of both versions run."""
DISK_SECONDS = 60.0
"""How old the cached version of the code on disk may be: reading it takes 20 ms."""
MAX_NAMED = 5

on_disk = Recent(code_version)


class WorkerOutdated(Check):
    """Workers that still run other code than is on the disk, long after a deploy."""

    code = "worker_outdated"
    rank = 78

    def causes(self, facts: Facts) -> list[Cause]:
        if not facts.pools:
            return []
        code = on_disk.get(DISK_SECONDS)
        workers = workers_of_other_code((pool.worker for pool in facts.pools), code)
        if not workers:
            return []
        deadline = database_now() - timedelta(seconds=DEPLOY_SECONDS)
        since = {worker.pulse: differs_since(worker, code) for worker in workers}
        outdated = [worker for worker in workers if since[worker.pulse] <= deadline]
        return [_cause(outdated, min(since.values()))] if outdated else []


def _cause(workers: list[Worker], since: datetime) -> Cause:
    names = ", ".join(worker.pulse for worker in workers[:MAX_NAMED])
    more = f" and {len(workers) - MAX_NAMED} more" if len(workers) > MAX_NAMED else ""
    runs = "1 worker runs" if len(workers) == 1 else f"{len(workers):,} workers run"
    return Cause(
        f"{runs} other code than is on this machine's disk, since {when(since)}: {names}{more}.",
        since=since,
        advice="Restart them, or finish the deploy.",
        link=Link("Workers", "tailrace:workers"),
    )
