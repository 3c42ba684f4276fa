"""Statistics of queues, tables and workers. The cost does not grow with the history."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine.claiming.claim_sql import PRIORITIES
from tailrace.jobs.engine.waking.activity import newest

EXACT_BELOW = 50_000
"""Tables with fewer rows are counted, larger ones estimated."""
TICK_LATE_SECONDS = 15
"""The tick runs each second; it counts as late after this time."""
WORKER_SECONDS = 30
"""A worker counts as live for this time after its last heartbeat."""
SILENT_SECONDS = 7
"""A worker that is not stopping counts as silent after this time: three heartbeats are missing."""
LISTED_SECONDS = 3600
"""How long a silent worker is listed."""


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The state of a queue and the number of its jobs. Counts stop at `cap`."""

    name: str
    pending: int
    due: int
    running: int
    failed: int
    oldest_due: datetime | None
    paused: bool
    awake_at: datetime | None
    drained_at: datetime | None
    max_running: int | None
    rate_limit: float | None
    retired: bool
    paused_reason: str = ""
    paused_until: datetime | None = None

    @property
    def oldest_due_seconds(self) -> float | None:
        """How long the oldest due job has been waiting."""
        return None if self.oldest_due is None else (clock.now() - self.oldest_due).total_seconds()


def _capped(where: str) -> str:
    rows = f"SELECT 1 FROM tailrace_jobs_live WHERE {where} LIMIT %(cap)s"
    return f"(SELECT count(*) FROM ({rows}) capped)"


OLDEST_DUE = f"""(SELECT min(first.due_at) AS oldest
  FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
  SELECT due_at FROM tailrace_jobs_live WHERE handler = q.name AND state = 'pending'
    AND priority = p.priority AND due_at <= {clock.NOW} ORDER BY due_at LIMIT 1) first)"""
"""SQL: the due time of the oldest due job of the queue `q`."""

QUEUES = f"""
SELECT q.name,
  {_capped("handler = q.name AND state = 'pending'")} AS pending,
  {_capped(f"handler = q.name AND state = 'pending' AND due_at <= {clock.NOW}")} AS due,
  coalesce(r.running, 0) AS running,
  {_capped("handler = q.name AND state = 'failed'")} AS failed,
  {OLDEST_DUE} AS oldest_due,
  q.paused_at IS NOT NULL AS paused, a.awake_at, a.drained_at,
  q.max_running, q.rate_limit,
  q.retired_at IS NOT NULL AS retired, q.paused_reason, q.paused_until
FROM tailrace_jobs_queue q LEFT JOIN LATERAL {newest("q.name")} a ON true LEFT JOIN (
  SELECT handler, count(*) AS running FROM tailrace_jobs_live WHERE state = 'running'
    GROUP BY handler
) r ON r.handler = q.name
WHERE q.retired_at IS NULL
  -- one scalar subquery per state: an EXISTS for both would be hashed from the whole table
  OR (SELECT 1 FROM tailrace_jobs_live WHERE handler = q.name AND state = 'pending'
    ORDER BY priority, due_at LIMIT 1) IS NOT NULL
  OR (SELECT 1 FROM tailrace_jobs_live WHERE handler = q.name AND state = 'failed'
    LIMIT 1) IS NOT NULL
ORDER BY q.name
"""


def queues(cap: int = 10_000) -> list[QueueStats]:
    """Return the statistics of all queues; counts stop at `cap`."""
    return [QueueStats(*row) for row in query(QUEUES, cap=cap)]


_LIVE_AND_FAILED = "SELECT " + ", ".join(
    _capped(f"state = '{state}'") for state in ("pending", "running", "failed")
)


def totals(cap: int = 100_000) -> dict[str, int]:
    """Return the number of jobs by state, up to `cap`; completed jobs are counted in a small table,
    and estimated as its remaining rows in a large one."""
    ((pending, running, failed),) = query(_LIVE_AND_FAILED, cap=cap)
    rows = estimate("tailrace_jobs_job")
    if rows < EXACT_BELOW:
        ((completed,),) = query("SELECT count(*) FROM tailrace_jobs_job WHERE state = 'completed'")
    else:
        completed = max(rows - pending - running - failed, 0)
    return {"pending": pending, "running": running, "completed": completed, "failed": failed}


# The estimate of a partitioned table is the sum of its partitions.
_PLANNERS_ROWS = """
SELECT coalesce(sum(greatest(reltuples, 0)), 0)::bigint
FROM pg_class WHERE relkind = 'r' AND (oid = %(table)s::regclass
  OR oid IN (SELECT relid FROM pg_partition_tree(%(table)s::regclass)))
"""


def estimate(table: str) -> int:
    """Return the table's number of rows: counted while it is small, else the planner's estimate."""
    ((guess,),) = query(_PLANNERS_ROWS, table=table)
    if guess < EXACT_BELOW:
        limited = f'SELECT 1 FROM "{table}" LIMIT {4 * EXACT_BELOW}'
        ((guess,),) = query(f"SELECT count(*) FROM ({limited}) limited")
    return int(guess)


MINUTES = 60
_COMPLETED = f"""
SELECT queue, completed, floor(extract(epoch FROM date_trunc('minute', {clock.NOW}) - minute) / 60)
FROM tailrace_jobs_throughput
WHERE minute > date_trunc('minute', {clock.NOW}) - make_interval(mins => {MINUTES})
"""


def completed_per_minute() -> dict[str, list[int]]:
    """Return, by queue, the jobs completed in each of the last MINUTES, oldest first."""
    counts: dict[str, list[int]] = {}
    for queue, completed, minutes_ago in query(_COMPLETED):
        line = counts.setdefault(queue, [0] * MINUTES)
        if 0 <= minutes_ago < MINUTES:
            line[MINUTES - 1 - int(minutes_ago)] = completed
    return counts


@dataclass(frozen=True, slots=True)
class LastTick:
    """The last tick: its age in seconds and its process; both are None before the first tick."""

    age: float | None = None
    by: str | None = None

    @property
    def late(self) -> bool:
        return self.age is None or self.age > TICK_LATE_SECONDS


def last_tick() -> LastTick:
    """Return the age and the process of the last tick."""
    age = f"extract(epoch FROM {clock.NOW} - at)"
    rows = query(f"SELECT {age}, by FROM tailrace_jobs_pulse WHERE name = 'tick'")
    return LastTick(max(float(rows[0][0]), 0.0), rows[0][1]) if rows else LastTick()


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker with a heartbeat; facts that it does not report are empty or 0."""

    pulse: str
    queues: list[str]
    age: float
    """Seconds since its last heartbeat."""
    name: str
    """Its Celery node name, which may not be unique."""
    host: str
    pid: int | None
    """The id of its main process."""
    concurrency: int
    """How many jobs of synchronous handlers it runs at once."""
    pool: str
    """The kind of its pool, e.g. prefork."""
    processes: list[dict[str, int]]
    """Id (`pid`) and memory (`memory`, bytes) of each process that runs jobs."""
    memory: int
    """The resident memory of all its processes in bytes."""
    started_at: datetime | None
    code: str
    """The version of its code: see `code_version`."""
    stopping: bool
    """Whether it was asked to end; also if it does not report this."""
    memory_minutes: list[int]
    """The largest memory in each of its last minutes, at most an hour, oldest first, in MB."""

    @property
    def silent(self) -> bool:
        """Whether it may be stopped, cut off or killed: its heartbeats are missing."""
        return self.age > SILENT_SECONDS and not self.stopping

    @property
    def process_ids(self) -> list[tuple[str, int]]:
        """Host and id of each process that runs jobs."""
        return [(self.host, process["pid"]) for process in self.processes]


def _worker(pulse: str, queues: list[str], age: float, facts: dict[str, Any]) -> Worker:
    pid, processes = facts.get("pid"), list(facts.get("processes", ()))
    children = sum(process["memory"] for process in processes if process["pid"] != pid)
    started_at = facts.get("started_at")
    return Worker(
        pulse,
        queues,
        age,
        name=str(facts.get("node") or pulse),
        host=str(facts.get("host", "")),
        pid=pid,
        concurrency=int(facts.get("concurrency", 0)),
        pool=str(facts.get("pool", "")),
        processes=processes,
        memory=int(facts.get("memory", 0)) + children,
        started_at=datetime.fromisoformat(started_at) if started_at else None,
        code=str(facts.get("code", "")),
        stopping=bool(facts.get("stopping", True)),
        memory_minutes=list(facts.get("memory_minutes", ())),
    )


_WORKERS = f"""
SELECT substr(name, 8), queues::text::json, extract(epoch FROM {clock.NOW} - at)::float8,
  facts::text::json FROM tailrace_jobs_pulse
WHERE name LIKE 'worker:%%' AND at > {clock.NOW} - make_interval(secs => %(within)s)
  AND (at > {clock.NOW} - make_interval(secs => {WORKER_SECONDS})
       OR facts ->> 'stopping' = 'false')
ORDER BY name LIMIT 1000
"""


def workers(within: float = WORKER_SECONDS) -> list[Worker]:
    """Return the workers with a heartbeat in the last `within` seconds. Workers that were asked to
    end are left out WORKER_SECONDS after their last heartbeat."""
    return [_worker(*row) for row in query(_WORKERS, within=within)]
