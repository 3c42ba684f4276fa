"""What several checks of a verdict look at, each read once."""

from functools import cached_property

from tailrace.jobs.inspection import pools, stats
from tailrace.jobs.inspection.pools import WorkerPool
from tailrace.jobs.inspection.unserved import UnservedQueue, unserved

PATIENCE_SECONDS = 10
"""How long a queue may have due jobs and no worker."""


class Facts:
    """What is read for one verdict, when a check first needs it."""

    @cached_property
    def tick(self) -> stats.LastTick:
        return stats.last_tick()

    @cached_property
    def unserved(self) -> list[UnservedQueue]:
        return unserved(PATIENCE_SECONDS)

    @cached_property
    def pools(self) -> list[WorkerPool]:
        """The live workers, and what they run."""
        workers, _others = pools.pools()
        return workers

    @cached_property
    def behind_full_pools(self) -> dict[str, list[WorkerPool]]:
        """The queues all of whose workers have only busy processes, and these workers."""
        serving: dict[str, list[WorkerPool]] = {}
        for pool in self.pools:
            for name in pool.worker.queues:
                serving.setdefault(name, []).append(pool)
        return {
            name: workers for name, workers in serving.items() if all(pool.full for pool in workers)
        }
