"""The statements of a claim. One shape, three ways to choose the candidates.

Each walks an index only as far as it needs: plain ones along what is due, fair and ordered ones
from lane to lane, so that a claim costs what it looks at and not what waits behind it.

The conditions have names, and the choice can be read without a lock (PREVIEW_…): `explain` says
why a job runs or not by what the claim itself goes by.
"""

from events import clock
from events.publish import RECORDED
from jobs.handler import LOWEST_PRIORITY

PRIORITIES = ", ".join(f"({number})" for number in range(LOWEST_PRIORITY + 1))

OPEN = "q.paused_at IS NULL"
PENDING = "state = 'pending'"
DUE = f"due_at <= {clock.NOW}"
IN_LANE = "lane <> ''"
"""A job without a lane is on no walk from lane to lane."""
IN_THIS_LANE = f"lane = lanes.lane AND {IN_LANE}"
RUNNING = "state = 'running' AND handler = %(handler)s"
LANE_BUSY = f"handler = %(handler)s AND state = 'running' AND {IN_THIS_LANE}"
LANE_HEAD = f"handler = %(handler)s AND {PENDING} AND {IN_THIS_LANE} ORDER BY id LIMIT 1"
"""Of an ordered lane: the head is the oldest pending job, due or not."""
TOKENS = f"""least(
              greatest(%(rate)s, 1),
              tokens + %(rate)s
                * greatest(extract(epoch FROM {clock.NOW} - tokens_at), 0)::float8)"""
"""A queue's token bucket as it stands now; a claim takes whole tokens."""

LOCK = "FOR UPDATE SKIP LOCKED"

# One index range per priority: `due_at <= now` behind a range of priorities would walk over all
# that is due later.
PLAIN = f"""
  SELECT due.id, due.event_id, due.isolate
  FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
    SELECT id, event_id, isolate FROM jobs_job
    WHERE handler = %(handler)s AND {PENDING} AND priority = p.priority
      AND {DUE}
    ORDER BY due_at, id LIMIT %(limit)s {LOCK}
  ) due
"""


def _walk(bounds: str) -> str:
    """Return the lanes with pending jobs within bounds, one index probe each (a loose scan)."""
    first = f"""
      SELECT lane FROM jobs_job WHERE handler = %(handler)s AND {PENDING} AND {IN_LANE}
        AND {bounds} ORDER BY lane LIMIT 1"""
    following = f"""
      SELECT lane FROM jobs_job WHERE handler = %(handler)s AND {PENDING} AND {IN_LANE}
        AND {bounds} AND lane > step.lane ORDER BY lane LIMIT 1"""
    return f"""(
    WITH RECURSIVE step (lane) AS (
      ({first})
      UNION ALL
      SELECT ({following}) FROM step WHERE step.lane IS NOT NULL
    ) SELECT lane FROM step WHERE lane IS NOT NULL)"""


# From the lane after the one that was served last, round to it again; evaluated lazily.
LANES = f"{_walk('lane > %(last_lane)s')} UNION ALL {_walk('lane <= %(last_lane)s')}"


def _walk_heads(bounds: str) -> str:
    """Return the lanes within bounds with the first of their pending jobs by priority and due time:
    mostly that one is due, and no other need be looked for."""
    job = f"""
      SELECT lane, priority, due_at FROM jobs_job
      WHERE handler = %(handler)s AND {PENDING} AND {IN_LANE} AND {bounds}"""
    first = "ORDER BY lane, priority, due_at, id LIMIT 1"
    return f"""(
    WITH RECURSIVE step AS (
      ({job} {first})
      UNION ALL
      SELECT following.* FROM step, LATERAL ({job} AND lane > step.lane {first}) following
    ) SELECT * FROM step)"""


HEADS = f"{_walk_heads('lane > %(last_lane)s')} UNION ALL {_walk_heads('lane <= %(last_lane)s')}"

FAIR = f"""
  SELECT due.id, due.event_id, due.isolate
  FROM turn, LATERAL (
    SELECT inner_due.* FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
      SELECT id, event_id, isolate FROM jobs_job
      WHERE handler = %(handler)s AND {PENDING} AND lane = turn.lane AND {IN_LANE}
        AND priority = p.priority AND {DUE}
      ORDER BY due_at, id LIMIT (SELECT share FROM shares) {LOCK}
    ) inner_due WHERE p.priority >= turn.priority LIMIT (SELECT share FROM shares)
  ) due
"""

_TURN = f"""
turn AS MATERIALIZED (
  SELECT lanes.lane, lanes.priority FROM ({HEADS}) lanes
  WHERE lanes.{DUE} OR EXISTS (
    SELECT 1 FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
      SELECT 1 FROM jobs_job
      WHERE handler = %(handler)s AND {PENDING} AND {IN_THIS_LANE}
        AND priority = p.priority AND {DUE} ORDER BY due_at, id LIMIT 1) due)
  LIMIT %(limit)s
),
shares AS MATERIALIZED (
  SELECT ceil(%(limit)s::numeric / greatest(count(*), 1))::int AS share FROM turn
),"""

# Only under the queue's claim lock: the head of a lane is chosen without a lock on its row.
ORDERED = f"""
  SELECT head.id, head.event_id, head.isolate
  FROM ({LANES}) lanes, LATERAL (
    SELECT id, event_id, isolate, due_at FROM jobs_job
    WHERE {LANE_HEAD}
  ) head
  WHERE head.{DUE} AND NOT EXISTS (
    SELECT 1 FROM jobs_job
    WHERE {LANE_BUSY})
"""


def _choice(candidates: str, before: str = "", quick: str = "") -> str:
    # A job that lost its worker once may be what kills workers: it is claimed alone, and
    # before the others of its batch, so that nobody passes it over for ever.
    return f"""
{before}
candidate AS MATERIALIZED (
  SELECT c.id, c.event_id, c.isolate, q.awake, row_number() OVER () AS place
  FROM {quick} jobs_queue q, LATERAL ({candidates}) c
  WHERE q.name = %(handler)s AND {OPEN}
  LIMIT %(limit)s
),
kept AS (
  SELECT id, event_id, awake FROM candidate
  WHERE place = (SELECT min(place) FROM candidate WHERE isolate)
     OR NOT EXISTS (SELECT 1 FROM candidate WHERE isolate)
)"""


def _claim(candidates: str, before: str = "") -> str:
    # A claim that a crash of the database loses is harmless (its worker is gone from the row, so
    # it settles nothing), so its commit does not wait for the disk.
    return f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
{_choice(candidates, before, "quick,")}
UPDATE jobs_job j
SET state = 'running', attempt = j.attempt + 1, claim_no = j.claim_no + 1, worker = %(worker)s,
    started_at = {clock.NOW}, lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
FROM kept LEFT JOIN events_event e ON e.id = kept.event_id
WHERE j.id = kept.id AND j.{PENDING}
RETURNING j.priority, extract(epoch FROM j.due_at)::float8, j.id, kept.awake,
          j.routing_key, j.payload, j.lane, j.attempt, j.claim_no, {RECORDED}
"""


def _preview(candidates: str, before: str = "") -> str:
    """Return the choice of a claim as a read: (id, isolate, taken) in the order of the choice."""
    return f"""
WITH {_choice(candidates.replace(LOCK, ""), before)}
SELECT id, isolate, id IN (SELECT id FROM kept) FROM candidate ORDER BY place
"""


CLAIM_PLAIN, PREVIEW_PLAIN = _claim(PLAIN), _preview(PLAIN)
CLAIM_FAIR, PREVIEW_FAIR = _claim(FAIR, _TURN), _preview(FAIR, _TURN)
CLAIM_ORDERED, PREVIEW_ORDERED = _claim(ORDERED), _preview(ORDERED)
