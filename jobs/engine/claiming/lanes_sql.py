"""SQL for the lanes that a claim takes jobs from, in turn.

If fewer than DUE_ROWS jobs are due, the claim uses the lanes of these jobs; lanes without due jobs
cost nothing. If more jobs are due, the claim walks along all lanes with pending jobs until it has
enough jobs, for at most STEPS lanes. If it still has too few jobs, the lanes of the first due jobs
follow. The next claim continues the walk where this one stopped, so that each lane gets its turn.
"""

from tailrace.db import clock
from tailrace.jobs.handler import LOWEST_PRIORITY

PRIORITIES = ", ".join(f"({number})" for number in range(LOWEST_PRIORITY + 1))
PENDING = "state = 'pending'"
DUE = f"due_at <= {clock.NOW}"
IN_LANE = "lane <> ''"
"""Jobs without a lane are not part of a walk along the lanes."""

DUE_ROWS = 200
"""Each claim reads up to this many due jobs. Reading one costs a tenth of one step of a walk."""
STEPS = "(%(limit)s + 300)::int"
"""Maximum number of lanes in a walk. A walk that reaches it has mostly found no due jobs."""

_JOBS = f"FROM tailrace_jobs_live WHERE handler = %(handler)s AND {PENDING}"


def _walk(name: str, bounds: str, begins: str) -> str:
    """Return SQL for a walk along the lanes with pending jobs within bounds: one index probe per
    lane (a loose index scan), which finds the first job of the lane by priority and due time.
    Mostly that job is due, and no other probe is needed."""
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


# From the lane after the last served lane, round to that lane again. Evaluated lazily.
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
    """Return SQL for the lane at which the walk stopped early, or NULL, for a claim of the first
    `count` lanes of `turn`."""
    # Read `after` and `before` only if the walk has ended: reading them would continue the walk.
    return f"""
CASE WHEN (SELECT count(*) FROM turn WHERE walked) < {count} THEN coalesce(
  (SELECT lane FROM after WHERE step = {STEPS}), (SELECT lane FROM before WHERE step = {STEPS})) END
"""
