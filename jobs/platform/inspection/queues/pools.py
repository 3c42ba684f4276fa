"""The running jobs of each worker and of its processes."""

from dataclasses import dataclass, field
from datetime import datetime

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.platform.inspection.queues import stats

MAX_JOBS = 2000
BUSY_SECONDS = 5
"""A process counts as busy if its jobs have been running for at least this time."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A running job and the process that claimed it."""

    id: int
    handler: str
    since: datetime
    seconds: float
    begun: bool
    """Whether its call has begun; if not, it waits for other jobs of its claim."""
    process: tuple[str, int]
    """Host and process id."""
    lease_until: datetime | None = None
    """Until when it belongs to its worker, unless the worker renews the lease."""

    @property
    def occupies(self) -> bool:
        """Whether it occupies its process; jobs of async handlers do not."""
        handler = registry.find(self.handler)
        return handler is None or not handler.is_async()


@dataclass(frozen=True, slots=True)
class WorkerPool:
    worker: stats.Worker
    jobs: list[RunningJob] = field(default_factory=list)

    @property
    def busy(self) -> int:
        """How many of its processes have been running a job for BUSY_SECONDS."""
        jobs = [job for job in self.jobs if job.occupies and job.seconds >= BUSY_SECONDS]
        return len({job.process for job in jobs})

    @property
    def full(self) -> bool:
        """Whether all of its processes are busy."""
        return 0 < self.worker.concurrency <= self.busy


_RUNNING = f"""
SELECT id, handler, started_at, extract(epoch FROM {clock.NOW} - started_at)::float8, begun, worker,
  lease_until
FROM tailrace_jobs_live WHERE state = 'running' AND started_at IS NOT NULL LIMIT {MAX_JOBS}
"""


def _process(name: str) -> tuple[str, int]:
    """Return host and process id of a claim's name, `host:process:claim`."""
    host, _, rest = name.partition(":")
    pid = rest.partition(":")[0]
    return host, int(pid) if pid.isdecimal() else 0


def pools() -> tuple[list[WorkerPool], list[RunningJob]]:
    """Return the live and the silent workers with their running jobs, and the running jobs without
    such a worker. The jobs are in the order of their start, and at most MAX_JOBS."""
    jobs = [
        RunningJob(id, handler, since, seconds, begun, _process(name), lease_until)
        for id, handler, since, seconds, begun, name, lease_until in query(_RUNNING)
    ]
    workers = [WorkerPool(worker) for worker in stats.workers(stats.LISTED_SECONDS)]
    owners = {process: pool for pool in workers for process in pool.worker.process_ids}
    others = []
    for job in sorted(jobs, key=lambda job: (job.since, job.id)):
        if pool := owners.get(job.process):
            pool.jobs.append(job)
        else:
            others.append(job)
    return workers, others
