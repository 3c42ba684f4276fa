from collections import Counter

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine.claiming.claim_sql import DUE_JOBS
from tailrace.jobs.platform.inspection.display.formatting import count, duration, when
from tailrace.jobs.platform.inspection.queues.pools import BUSY_SECONDS, RunningJob, WorkerPool
from tailrace.jobs.platform.inspection.queues.stats import OLDEST_DUE
from tailrace.jobs.platform.inspection.verdict.cause import (
    Cause,
    Check,
    Facts,
    Link,
    worker_command,
)

MAX_COUNTED = 1000
MAX_NAMED = 3

# Queues that could start a job if a process were free; `unserved` checks the other queues.
_WAITING = f"""
SELECT name, due, oldest FROM (
  SELECT q.name, {DUE_JOBS} AS due,
    extract(epoch FROM {clock.NOW} - {OLDEST_DUE})::float8 AS oldest
  FROM tailrace_jobs_queue q WHERE q.name = ANY(%(names)s) AND q.paused_at IS NULL
    AND (q.max_running IS NULL OR q.max_running > (
      SELECT count(*) FROM tailrace_jobs_live WHERE handler = q.name AND state = 'running'))
) waiting WHERE oldest >= {BUSY_SECONDS} ORDER BY due DESC, name
"""


class PoolFull(Check):
    """All processes of the workers that could run due jobs are busy."""

    code = "pool_full"
    rank = 40

    def causes(self, facts: Facts) -> list[Cause]:
        full = facts.behind_full_pools
        rows = query(_WAITING, names=list(full), cap=MAX_COUNTED) if full else []
        if not rows:
            return []
        pools = {pool.worker.pulse: pool for name, _, _ in rows for pool in full[name]}
        return [_cause(list(pools.values()), rows, worker_command(facts.workers))]


def _cause(pools: list[WorkerPool], rows: list[tuple[str, int, float]], command: str) -> Cause:
    jobs = [job for pool in pools for job in pool.jobs if job.occupies]
    processes = sum(pool.worker.concurrency for pool in pools)
    # `jobs` are the oldest first, so this keeps the first job of each process.
    since = max({job.process: job.since for job in reversed(jobs)}.values())
    due, oldest = sum(row[1] for row in rows), max(row[2] for row in rows)
    verb = "waits" if due == 1 else "wait"
    subject = f"All {processes:,} worker processes have"
    if processes == 1:
        subject = "The only worker process has"
    return Cause(
        f"{subject} been busy since {when(since)}: {_running_jobs(jobs)}."
        f" {count(due, 'due job', MAX_COUNTED)} of {_queues(rows)} {verb}, the first for"
        f" {duration(oldest)}.",
        subject=rows[0][0],
        since=since,
        advice="Due jobs start when these jobs end. To run more jobs at once, start another"
        " worker.",
        command=command,
        link=Link("Running jobs of the workers", "tailrace:workers", (), "tailrace_jobs.view_job"),
    )


def _running_jobs(jobs: list[RunningJob]) -> str:
    """Return `2 × builds.poll (job 7 for 1 min)`, the handlers with the most jobs first."""
    parts = []
    for name, number in Counter(job.handler for job in jobs).most_common(MAX_NAMED):
        longest = max((job for job in jobs if job.handler == name), key=lambda job: job.seconds)
        parts.append(f"{number:,} × {name} (job {longest.id} for {duration(longest.seconds)})")
    return ", ".join(parts)


def _queues(rows: list[tuple[str, int, float]]) -> str:
    names = [name for name, _, _ in rows[:MAX_NAMED]]
    more = f" and {len(rows) - MAX_NAMED} more queues" if len(rows) > MAX_NAMED else ""
    return ", ".join(names) + more
