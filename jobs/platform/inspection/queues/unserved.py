"""Find queues with due jobs and no progress, and the reason, for `/healthz` and the overview.

A queue is unserved if jobs have been due for some time, and none was claimed or settled since.
Queues that are paused, or wait for their rate limit or for the first jobs of their lanes, are not
meant to make progress and are left out.
"""

from dataclasses import dataclass

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.db.sql.token_bucket import tokens_at
from tailrace.environment.conf import conf
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming.claim_sql import PRIORITIES
from tailrace.jobs.engine.waking.activity import newest
from tailrace.jobs.handler import Handler
from tailrace.jobs.platform.inspection.display.formatting import duration
from tailrace.jobs.platform.inspection.queues import stats

STALLED_SECONDS, PATIENCE_SECONDS = 10, 30
"""After how long without progress a queue is shown as unserved (one without workers is a cause of
the verdict), and after how long it is a fault."""


@dataclass(frozen=True, slots=True)
class UnservedQueue:
    """A queue with due jobs and no progress."""

    name: str
    reason: str
    workers: int
    """Number of workers that serve it."""
    stalled: float = 0.0
    """Seconds since its last progress: the oldest due time, last claim or last settlement."""
    running: int = 0


_TOKENS = tokens_at(
    clock.NOW, tokens="a.tokens", filled_at="a.tokens_at", capacity="greatest(rate.of_queue, 1)",
    rate="rate.of_queue",
)  # fmt: skip
# Throughput is counted by the minute, so a settlement may be read as up to a minute later than it
# was. Claims of the current drain are visible in the jobs that are running.
_STALLED = f"""
SELECT q.name, q.max_running, running.count,
  extract(epoch FROM {clock.NOW} - running.last_claim)::float8,
  extract(epoch FROM {clock.NOW} - greatest(
    due.oldest, running.last_claim, settled.at))::float8,
  rate.of_queue IS NOT NULL AND {_TOKENS} < 1
FROM tailrace_jobs_queue q LEFT JOIN LATERAL {newest("q.name")} a ON true,
LATERAL {stats.OLDEST_DUE} due,
LATERAL (
  SELECT coalesce(q.rate_limit, (
    SELECT rate FROM unnest(%(names)s::text[], %(rates)s::float8[]) declared (name, rate)
    WHERE declared.name = split_part(q.name, '@', 1))) AS of_queue  -- also of its variants
) rate,
LATERAL (
  SELECT count(*) AS count, max(started_at) AS last_claim FROM tailrace_jobs_live
  WHERE state = 'running' AND handler = q.name
) running
LEFT JOIN LATERAL (
  SELECT least(minute + interval '1 minute', {clock.NOW}) AS at FROM tailrace_jobs_throughput
  WHERE queue = q.name AND minute > {clock.NOW} - interval '1 hour' ORDER BY minute DESC LIMIT 1
) settled ON TRUE
WHERE q.paused_at IS NULL AND due.oldest < {clock.NOW} - make_interval(secs => %(patience)s)
ORDER BY q.name
"""


def unserved(patience: float = PATIENCE_SECONDS) -> list[UnservedQueue]:
    """Return the queues with jobs due for more than `patience` seconds and no progress since.

    A queue with running jobs is given at least its handler's time limit plus the length of a drain,
    because a call may take that long.
    """
    queues = []
    listening: list[str] | None = None
    rates = {
        name: handler.rate_limit
        for name, handler in registry.all_handlers().items()
        if handler.rate_limit
    }
    rows = query(
        _STALLED, patience=patience, names=text_array(rates), rates=number_array(rates.values())
    )
    for name, max_running, running, last_claim, stalled, limited in rows:
        handler = registry.find(name)
        if limited or stalled <= _patience(handler, running, patience):
            continue
        if not running and handler is not None and _wait_for_their_lanes(handler):
            continue
        if listening is None:
            listening = [queue for worker in stats.workers() for queue in worker.queues]
        workers = listening.count(name if handler is None else handler.worker_queue or name)
        most = max_running or (handler.max_running if handler else None)
        reason = _reason(workers, running, last_claim or 0.0, stalled, most)
        queues.append(UnservedQueue(name, reason, workers, stalled, running))
    return queues


def _patience(handler: Handler | None, running: int, patience: float) -> float:
    if not running:
        return patience
    limit = (handler.time_limit if handler else None) or 0
    return max(patience, limit) + float(conf.JOBS_DRAIN_SECONDS)


# Reads a bounded number of rows: only the jobs that have been due for longest.
_FIRST_OF_LANE = f"""
SELECT 1 FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
  SELECT id, lane FROM tailrace_jobs_live WHERE handler = %(handler)s AND state = 'pending'
    AND priority = p.priority AND due_at <= {clock.NOW} ORDER BY due_at, id LIMIT 100
) due
WHERE lane = '' OR NOT EXISTS (
  SELECT 1 FROM tailrace_jobs_live before WHERE before.handler = %(handler)s
    AND before.state = 'pending' AND before.lane = due.lane
    AND before.lane <> '' AND before.id < due.id)
LIMIT 1
"""


def _wait_for_their_lanes(handler: Handler) -> bool:
    """Return whether all due jobs wait for earlier jobs of their lanes that are not due yet."""
    return handler.ordered and not query(_FIRST_OF_LANE, handler=handler.name)


def _reason(workers: int, running: int, last_claim: float, stalled: float, most: int | None) -> str:
    if not workers:
        return "no worker serves it"
    if running:
        jobs = "job has" if running == 1 else "jobs have"
        full = most is not None and running >= most
        limit = f"max_running is {most}" if full else "the workers have no free capacity"
        return f"its {running} running {jobs} not ended for {duration(last_claim)}; {limit}"
    return (
        f"workers serve it, but no job was claimed for {duration(stalled)}: the workers are busy"
        " with other queues, or wake-ups do not arrive"
    )
