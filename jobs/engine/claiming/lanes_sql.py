"""Which lanes a claim looks at, in turn: the part of the claims of queues with lanes.

Where fewer than DUE_ROWS jobs are due, their lanes take part, and those that wait cost nothing.
Where more are due, a claim walks along the lanes as far as it needs, STEPS at most. If that does
not fill it, the lanes of the first due jobs follow, and the next claim walks on from where this
one stopped: each lane has its turn.
"""

from tailrace.db import clock
from tailrace.jobs.handler import LOWEST_PRIORITY

PRIORITIES = ", ".join(f"({number})" for number in range(LOWEST_PRIORITY + 1))
PENDING = "state = 'pending'"
DUE = f"due_at <= {clock.NOW}"
IN_LANE = "lane <> ''"
"""A walk from lane to lane does not reach jobs without a lane."""

DUE_ROWS = 200
"""So many due jobs are looked at by each claim: reading one costs a tenth of a step to a lane."""
STEPS = "(%(limit)s + 300)::int"
"""Lanes that a claim walks along, mostly in vain if it is as many."""

_JOBS = f"FROM tailrace_jobs_live WHERE handler = %(handler)s AND {PENDING}"


def _walk(name: str, bounds: str, begins: str) -> str:
    """Return a walk along the lanes with pending jobs within bounds, one index probe each (a loose
    scan), with the first of their jobs by priority and due time: mostly that one is due, and no
    other need be looked for."""
    first = "ORDER BY lane, priority, due_at, id LIMIT 1"
    return f"""
{name} AS (
  (SELECT lane, priority, 1 AS step {_JOBS} AND {IN_LANE} AND {bounds} AND {begins} {first})
  UNION ALL
  SELECT following.* FROM {name}, LATERAL (
    SELECT lane, priority, {name}.step + 1 {_JOBS} AND {IN_LANE} AND {bounds}
      AND lane > {name}.lane {first}) following
  WHERE {name}.step < {STEPS}
)"""


# From the lane after the one that was served last, round to it again; evaluated lazily.
WALK = f"""
due AS MATERIALIZED (
  SELECT first.lane, p.priority FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
    SELECT lane {_JOBS} AND priority = p.priority AND {DUE} ORDER BY due_at, id LIMIT {DUE_ROWS}
  ) first LIMIT {DUE_ROWS}
),
{_walk("after", "lane > %(last_lane)s", f"(SELECT count(*) FROM due) >= {DUE_ROWS}")},
{
    _walk(
        "before",
        "lane <= %(last_lane)s",
        f"(SELECT count(*) FROM due) >= {DUE_ROWS} AND (SELECT count(*) FROM after) < {STEPS}",
    )
},"""

LANES = f"""
  SELECT lane, priority, TRUE AS walked FROM after
  UNION ALL
  SELECT lane, priority, TRUE FROM before
  UNION ALL
  (SELECT lane, min(priority), FALSE FROM due
   WHERE {IN_LANE} AND lane NOT IN (SELECT lane FROM after UNION ALL SELECT lane FROM before)
   GROUP BY lane ORDER BY lane <= %(last_lane)s, lane)"""


def stopped_at(count: str) -> str:
    """Return SQL for the lane at which the walk stopped early, NULL if it did not, for a claim of
    the first `count` lanes of `turn`."""
    # Only read where the walk has ended: to read it makes it go on.
    return f"""
CASE WHEN (SELECT count(*) FROM turn WHERE walked) < {count} THEN coalesce(
  (SELECT lane FROM after WHERE step = {STEPS}), (SELECT lane FROM before WHERE step = {STEPS})) END
"""
