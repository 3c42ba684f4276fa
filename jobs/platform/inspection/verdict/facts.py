"""Data that several checks of a verdict use, each read once."""

from functools import cached_property

from tailrace.jobs.platform.inspection.queues import pools, stats
from tailrace.jobs.platform.inspection.queues.pools import WorkerPool
from tailrace.jobs.platform.inspection.queues.unserved import (
    STALLED_SECONDS,
    UnservedQueue,
    unserved,
)


class Facts:
    """The data of one verdict. Each property is read when a check first uses it."""

    @cached_property
    def tick(self) -> stats.LastTick:
        return stats.last_tick()

    @cached_property
    def unserved(self) -> list[UnservedQueue]:
        return unserved(STALLED_SECONDS)

    @cached_property
    def pools(self) -> list[WorkerPool]:
        """The live workers with their running jobs."""
        workers, _jobs_without_worker = pools.pools()
        return workers

    @cached_property
    def behind_full_pools(self) -> dict[str, list[WorkerPool]]:
        """The workers of each queue whose workers are all full, by queue name."""
        serving: dict[str, list[WorkerPool]] = {}
        for pool in self.pools:
            for name in pool.worker.queues:
                serving.setdefault(name, []).append(pool)
        return {
            name: workers for name, workers in serving.items() if all(pool.full for pool in workers)
        }
