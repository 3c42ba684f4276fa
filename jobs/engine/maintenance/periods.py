"""Sum up the jobs of each queue per minute, ten minutes and hour, for the charts of its page. Do
the same for all queues together, for the overview.

Minutes are computed from the jobs that finished in them, which the indexes on `finished_at` find,
and from Throughput; longer periods from shorter ones. Existing periods are not changed, so a
repeated turn has no effect. All queues together have a row for each minute, even if nothing
happened in it.
"""

import time
from datetime import timedelta

from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import execute, query
from tailrace.jobs.engine.claiming.claim_sql import DUE_JOBS
from tailrace.jobs.models.queue_period import ALL_QUEUES, HOUR, MINUTE, TEN_MINUTES, class_of

LAG = 20
"""Seconds after the end of a minute until it is summed up, so that all workers have settled."""
LONGEST_GAP = 3600
"""Seconds before now that are summed up after a time without upkeep."""
PIECE = timedelta(minutes=5)
"""The part of a gap that one statement sums up: a few seconds of work at 3,000 jobs per second."""
MOST_SECONDS = 20.0
"""A turn ends after this time, because other upkeep waits; the next turn continues."""
KEPT_HOURS = {MINUTE: 3, TEN_MINUTES: 36, HOUR: 8 * 24}

MOST_DUE = 10_000
"""Due jobs of a queue are counted up to this number."""

_UNTIL = f"date_bin(make_interval(secs => {{seconds}}), {clock.NOW} - interval '{LAG} s', 'epoch')"
_SINCE = f"""greatest(
  (SELECT max(at) + make_interval(secs => {{seconds}}) FROM tailrace_jobs_queueperiod
   WHERE seconds = {{seconds}}), {_UNTIL} - make_interval(secs => {{gap}}))"""

_BOUNDS = "since AS MATERIALIZED (SELECT {since} AS since, {until} AS until)"


def _bounds(seconds: int, gap: int) -> str:
    since = _SINCE.format(seconds=seconds, gap=gap)
    return _BOUNDS.format(since=since, until=_UNTIL.format(seconds=seconds))


def _classes(column: str, source: str) -> str:
    """Return a query for the number of jobs by class of `column`, as JSON, per queue and time."""
    return f"""
  SELECT queue, at, jsonb_object_agg({column}, jobs) AS {column} FROM (
    SELECT queue, at, {column}, sum(jobs) AS jobs FROM ({source}) source
    GROUP BY queue, at, {column}
  ) classes GROUP BY queue, at"""


_COLUMNS = "(queue, seconds, at, completed, retried, failed, busy_ms, wait, run, events, due)"

_GAP = f"""
SELECT {_SINCE.format(seconds=MINUTE, gap=LONGEST_GAP)}, {_UNTIL.format(seconds=MINUTE)}
"""
_IN_PIECE = """finished_at >= %(since)s::timestamptz AND finished_at < %(until)s::timestamptz
      AND finished_at IS NOT NULL AND started_at IS NOT NULL"""
# Each part uses the index of its state, and reads only the last days of the history.
_ENDED = f"""
    SELECT handler, due_at, started_at, finished_at FROM tailrace_jobs_job
    WHERE {_IN_PIECE} AND state <> 'failed' AND state <> 'cancelled'
      AND (done_on IS NULL OR done_on >= (%(since)s::timestamptz AT TIME ZONE 'UTC')::date)
    UNION ALL
    SELECT handler, due_at, started_at, finished_at FROM tailrace_jobs_live
    WHERE {_IN_PIECE} AND state = 'failed'"""
_MINUTES = f"""
WITH {_BOUNDS.format(since="%(since)s::timestamptz", until="%(until)s::timestamptz")},
ended AS MATERIALIZED (
  SELECT handler AS queue, date_trunc('minute', finished_at) AS at, 1 AS jobs,
    {class_of("started_at - due_at")} AS wait, {class_of("finished_at - started_at")} AS run
  FROM ({_ENDED}) ended
),
waits AS ({_classes("wait", "SELECT queue, at, wait, jobs FROM ended")}),
runs AS ({_classes("run", "SELECT queue, at, run, jobs FROM ended")}),
counts AS (
  SELECT queue, minute AS at, completed, retried, failed, busy_ms
  FROM since, tailrace_jobs_throughput WHERE minute >= since AND minute < until
)
INSERT INTO tailrace_jobs_queueperiod {_COLUMNS}
SELECT queue, {MINUTE}, at, coalesce(completed, 0), coalesce(retried, 0), coalesce(failed, 0),
  coalesce(busy_ms, 0), coalesce(wait, '{{}}'), coalesce(run, '{{}}'), 0, NULL
FROM waits JOIN runs USING (queue, at) FULL JOIN counts USING (queue, at)
ON CONFLICT DO NOTHING
"""


def _parts(column: str) -> str:
    return f"""SELECT queue, at, key::int AS {column}, value::bigint AS jobs
      FROM parts, jsonb_each_text(parts.{column})"""


# Events are found by the index on `recorded_at`. The number of due jobs is that of now, so only the
# last minute has one.
_ALL_MINUTES = f"""
WITH {_BOUNDS.format(since="%(since)s::timestamptz", until="%(until)s::timestamptz")},
minutes AS (
  SELECT generate_series(since, until - interval '1 minute', interval '1 minute') AS at FROM since
),
parts AS MATERIALIZED (
  SELECT '{ALL_QUEUES}' AS queue, at, completed, retried, failed, busy_ms, wait, run
  FROM since, tailrace_jobs_queueperiod
  WHERE seconds = {MINUTE} AND at >= since AND at < until AND queue <> '{ALL_QUEUES}'
),
waits AS ({_classes("wait", _parts("wait"))}),
runs AS ({_classes("run", _parts("run"))}),
counts AS (
  SELECT at, sum(completed) AS completed, sum(retried) AS retried, sum(failed) AS failed,
    sum(busy_ms) AS busy_ms
  FROM parts GROUP BY at
),
recorded AS (
  SELECT date_trunc('minute', recorded_at) AS at, count(*) AS events FROM tailrace_events_event
  WHERE recorded_at >= %(since)s::timestamptz AND recorded_at < %(until)s::timestamptz GROUP BY 1
)
INSERT INTO tailrace_jobs_queueperiod {_COLUMNS}
SELECT '{ALL_QUEUES}', {MINUTE}, at, coalesce(completed, 0), coalesce(retried, 0),
  coalesce(failed, 0), coalesce(busy_ms, 0), coalesce(wait, '{{}}'), coalesce(run, '{{}}'),
  coalesce(events, 0), CASE WHEN at = %(last)s::timestamptz THEN (
    SELECT sum({DUE_JOBS}) FROM tailrace_jobs_queue q) END
FROM minutes LEFT JOIN waits USING (at) LEFT JOIN runs USING (at) LEFT JOIN counts USING (at)
  LEFT JOIN recorded USING (at)
ON CONFLICT DO NOTHING
"""

_LONGER = """
WITH {bounds},
parts AS MATERIALIZED (
  SELECT queue, date_bin(make_interval(secs => {seconds}), at, 'epoch') AS at,
    completed, retried, failed, busy_ms, wait, run, events, due
  FROM since, tailrace_jobs_queueperiod WHERE seconds = {shorter} AND at >= since AND at < until
),
waits AS ({waits}),
runs AS ({runs}),
counts AS (
  SELECT queue, at, sum(completed) AS completed, sum(retried) AS retried, sum(failed) AS failed,
    sum(busy_ms) AS busy_ms, sum(events) AS events, max(due) AS due
  FROM parts GROUP BY queue, at
)
INSERT INTO tailrace_jobs_queueperiod {columns}
SELECT queue, {seconds}, at, completed, retried, failed, busy_ms,
  coalesce(wait, '{{}}'), coalesce(run, '{{}}'), events, due
FROM counts LEFT JOIN waits USING (queue, at) LEFT JOIN runs USING (queue, at)
ON CONFLICT DO NOTHING
"""


def _longer(seconds: int, shorter: int) -> str:
    return _LONGER.format(
        bounds=_bounds(seconds, KEPT_HOURS[shorter] * 3600),
        seconds=seconds,
        shorter=shorter,
        columns=_COLUMNS,
        waits=_classes("wait", _parts("wait")),
        runs=_classes("run", _parts("run")),
    )


_LONGER_STEPS = (_longer(TEN_MINUTES, MINUTE), _longer(HOUR, TEN_MINUTES))

_DELETE = f"""
DELETE FROM tailrace_jobs_queueperiod
WHERE seconds = %(seconds)s AND at < {clock.NOW} - make_interval(hours => %(hours)s)
"""


def add_up() -> int:
    """Sum up the periods that are over, longer ones when all of their minutes exist; delete periods
    that no chart shows any more. Return how many rows were added."""
    added, is_whole = _add_minutes()
    with transaction.atomic(using=home()):
        _avoid_sequential_scans()
        if is_whole:
            added += sum(execute(step) for step in _LONGER_STEPS)
        for seconds, hours in KEPT_HOURS.items():
            execute(_DELETE, seconds=seconds, hours=hours)
    return added


def _add_minutes() -> tuple[int, bool]:
    """Sum up the minutes that are over, one piece per transaction; return how many rows were added,
    and whether no minute is left."""
    [(since, until)] = query(_GAP)
    added, deadline = 0, time.monotonic() + MOST_SECONDS
    while since < until and time.monotonic() <= deadline:
        end = min(since + PIECE, until)
        with transaction.atomic(using=home()):
            _avoid_sequential_scans()
            added += execute(_MINUTES, since=since, until=end)
            last = until - timedelta(seconds=MINUTE)
            added += execute(_ALL_MINUTES, since=since, until=end, last=last, cap=MOST_DUE)
        since = end
    return added, since >= until


def _avoid_sequential_scans() -> None:
    """Keep the planner from reading whole tables that have no statistics yet."""
    execute("SET LOCAL enable_seqscan = off")
