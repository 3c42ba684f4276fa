from collections import Counter
from datetime import timedelta

from tailrace.db import clock
from tailrace.jobs.platform.inspection.display.formatting import count, duration, when
from tailrace.jobs.platform.inspection.queues.pools import WorkerPool
from tailrace.jobs.platform.inspection.verdict.cause import (
    Cause,
    Check,
    Facts,
    Link,
    worker_command,
)

SHOWN_SECONDS = 300
"""A silent worker that holds no jobs is no longer a cause after this time."""
MAX_NAMED = 3


class WorkerSilent(Check):
    """Workers without a heartbeat that were not asked to end: frozen, cut off or killed."""

    code = "worker_silent"
    rank = 15

    def causes(self, facts: Facts) -> list[Cause]:
        silent = [
            pool
            for pool in facts.all_pools
            if pool.worker.silent and (pool.jobs or pool.worker.age < SHOWN_SECONDS)
        ]
        silent.sort(key=lambda pool: (-len(pool.jobs), pool.worker.age))
        command = worker_command(facts.workers)
        causes = [_cause(pool, command) for pool in silent[:MAX_NAMED]]
        if (more := len(silent) - MAX_NAMED) > 0:
            words = f"{count(more, 'more worker')} cannot be heard."
            causes.append(Cause(words, link=Link("Workers", "tailrace:workers")))
        return causes


def _cause(pool: WorkerPool, command: str) -> Cause:
    worker = pool.worker
    return Cause(
        f"The worker {worker.name} (process {worker.pid} on {worker.host}) has sent no heartbeat"
        f" for {duration(worker.age)}, so it may be frozen, cut off or killed. {_held_jobs(pool)}",
        since=clock.now() - timedelta(seconds=worker.age),
        advice="Continue or restart it, or start another worker.",
        command=command,
        link=Link("Workers", "tailrace:workers"),
    )


def _held_jobs(pool: WorkerPool) -> str:
    """Return how many jobs the worker holds, and when other workers can claim them."""
    if not pool.jobs:
        return "It holds no jobs."
    names = Counter(job.handler for job in pool.jobs).most_common(MAX_NAMED)
    jobs = ", ".join(f"{number:,} × {name}" for name, number in names)
    leases = [job.lease_until for job in pool.jobs if job.lease_until]
    first = f" from {when(min(leases))}" if leases else ""
    held = f"It holds {count(len(pool.jobs), 'job')} ({jobs})"
    return f"{held}, which other workers can claim{first}."
