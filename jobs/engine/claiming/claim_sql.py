"""The statements that claim jobs: one structure, with several ways to choose the candidates.

Each statement scans an index only as far as it needs, so that its cost does not depend on the
number of waiting jobs: plain claims scan the due jobs, fair and ordered claims walk along lanes.

The conditions have names, and the candidates can be read without locks (PREVIEW_…), so that
`explain` uses the same conditions as the claim.
"""

from tailrace.db import clock
from tailrace.db.plans import probe, unindexed
from tailrace.db.token_bucket import tokens_at
from tailrace.events.publish import RECORDED
from tailrace.jobs.engine.activity import newest
from tailrace.jobs.engine.claiming import lanes_sql
from tailrace.jobs.engine.claiming.lanes_sql import LANES, WALK, stopped_at

PRIORITIES, PENDING = lanes_sql.PRIORITIES, lanes_sql.PENDING
DUE, IN_LANE = lanes_sql.DUE, lanes_sql.IN_LANE
OPEN = "q.paused_at IS NULL"
RUNNING = "state = 'running' AND handler = %(handler)s"
# With BETWEEN and ORDER BY lane, only an index by lane and id needs no sort. With `lane = …` the
# planner would use the primary key if the statistics contain only one lane.
_THIS_LANE = f"handler = %(handler)s AND lane BETWEEN lanes.lane AND lanes.lane AND {IN_LANE}"
LANE_BUSY = f"state = 'running' AND {_THIS_LANE} ORDER BY lane LIMIT 1"
LANE_HEAD = f"{PENDING} AND {_THIS_LANE} ORDER BY lane, id LIMIT 1"
"""The head of an ordered lane: its oldest pending job, due or not."""
TOKENS = tokens_at(
    clock.NOW, tokens="tokens", filled_at="tokens_at", capacity="greatest(%(rate)s, 1)"
)
"""The tokens in a queue's bucket now; a claim takes whole tokens."""

LOCK = "FOR UPDATE SKIP LOCKED"


# One index range per priority: a scan for `due_at <= now` in all priorities would pass over all
# jobs that are due later.
def _plain(due: str) -> str:
    return f"""
  SELECT due.id, due.event_id, due.isolate
  FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
    SELECT id, event_id, isolate FROM tailrace_jobs_live
    WHERE handler = %(handler)s AND {PENDING} AND priority = p.priority
      AND {due}
    ORDER BY due_at, id LIMIT %(limit)s {LOCK}
  ) due
"""


PLAIN = _plain(DUE)
_PLAIN_SINCE = _plain(
    f"""{DUE} AND due_at >= {clock.NOW}
      - make_interval(secs => (%(ages)s::float8[])[p.priority + 1])"""
)


def _first_due(lane: str, count: str) -> str:
    """Return SQL for the first due jobs of a lane by priority, with one index range per priority.
    It passes over locked jobs."""
    return f"""
    SELECT in_order.* FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
      SELECT id, event_id, isolate FROM tailrace_jobs_live
      WHERE handler = %(handler)s AND {PENDING} AND lane = {lane}.lane AND {IN_LANE}
        AND priority = p.priority AND {DUE}
      ORDER BY due_at, id LIMIT {count} {LOCK}
    ) in_order WHERE p.priority >= {lane}.priority LIMIT {count}"""


# For lanes that are destinations. The parameters are the lanes with calls in flight in this
# process, and the numbers of these calls.
PLACES = """%(per_lane)s - coalesce((
    SELECT in_use.count FROM unnest(%(lanes)s::text[], %(counts)s::int[]) AS in_use (lane, count)
    WHERE in_use.lane = lanes.lane), 0)"""
"""The number of calls to a lane's destination that may still begin in this process."""


# A lane takes part in a claim if one of its due jobs can be locked. A lane whose due jobs are all
# locked, mostly by other claims, costs one index probe and gets no share.
def _lanes_in_turn(lanes: str, count: str) -> str:
    return f"""{WALK}
turn AS MATERIALIZED (
  SELECT lanes.*, first.*
  FROM ({lanes}) lanes, LATERAL ({_first_due("lanes", "1")}) first
  LIMIT {count}
),"""


def _turn(lanes: str) -> str:
    return f"""{_lanes_in_turn(lanes, "%(limit)s")}
shares AS MATERIALIZED (
  SELECT ceil(%(limit)s::numeric / greatest(count(*), 1))::int AS share FROM turn
),"""


_TURN = _turn(LANES)
_TURN_BY_PLACES = _turn(f"""
  SELECT * FROM (SELECT lanes.*, {PLACES} AS places FROM ({LANES}) lanes) lanes
  WHERE places > 0""")


# For batches of one lane: the next lane in turn, and its batch size.
_TURN_OF_ONE = f"""{_lanes_in_turn(LANES, "1")}
shares AS MATERIALIZED (
  SELECT least(coalesce(sizes.size, %(other_lanes)s), %(limit)s) AS share
  FROM turn LEFT JOIN unnest(%(lanes)s::text[], %(sizes)s::int[]) AS sizes (lane, size)
    ON sizes.lane = turn.lane
),"""


# The first job of each lane, then the rest of its share. A transaction does not pass over its own
# locks, so the scan finds the first job again.
def _fair(share: str) -> str:
    return f"""
  SELECT id, event_id, isolate FROM turn
  UNION ALL
  SELECT more.id, more.event_id, more.isolate
  FROM turn, LATERAL ({_first_due("turn", share)}) more
  WHERE (SELECT share FROM shares) > 1 AND more.id <> turn.id
"""


FAIR = _fair("(SELECT share FROM shares)")
_FAIR_BY_PLACES = _fair("least((SELECT share FROM shares), turn.places)")

# To be used only under the queue's claim lock, because it reads without a lock whether a lane is
# busy. The head is chosen first and then locked, so that a lane with a locked head is passed over.
_TURN_IN_ORDER = f"""{WALK}
turn AS MATERIALIZED (
  SELECT lanes.*, job.id, job.event_id, job.isolate
  FROM ({LANES}) lanes, LATERAL (
    SELECT id, due_at FROM tailrace_jobs_live
    WHERE {LANE_HEAD}
  ) head, LATERAL (
    SELECT id, event_id, isolate FROM tailrace_jobs_live
    WHERE {probe("id", "head.id")} AND {unindexed("state")} = 'pending' AND {DUE} AND (
      SELECT id FROM tailrace_jobs_live
      WHERE {LANE_BUSY}) IS NULL
    {LOCK}
  ) job
  WHERE head.{DUE}
  LIMIT %(limit)s
),"""
ORDERED = "SELECT id, event_id, isolate FROM turn"


def _choice(candidates: str, before: str = "", quick: str = "") -> str:
    # A job whose worker was lost may be the one that kills workers. It is claimed as the only job,
    # before the others of its batch, so that it is not passed over for ever.
    return f"""
{before}
candidate AS MATERIALIZED (
  SELECT c.id, c.event_id, c.isolate, row_number() OVER () AS place,
    coalesce((SELECT a.awake FROM {newest("%(handler)s")} a), false) AS awake
  FROM {quick} tailrace_jobs_queue q, LATERAL ({candidates}) c
  WHERE q.name = %(handler)s AND {OPEN}
  LIMIT %(limit)s
),
kept AS (
  SELECT id, event_id, awake FROM candidate
  WHERE place = (SELECT min(place) FROM candidate WHERE isolate)
     OR NOT EXISTS (SELECT 1 FROM candidate WHERE isolate)
)"""


_ONE_JOB = "(SELECT count(*) = 1 OR bool_or(isolate) FROM candidate)"
"""Whether a claim has one job, which begins at once. For other claims `give_back` records the
begin of each call."""


def _claim(candidates: str, before: str = "", lanes: str | None = None) -> str:
    """Return SQL for a claim. `lanes`: for a claim in lanes, SQL for the number of lanes it takes.
    Each of its rows then begins with the lane at which the walk stopped early; if it claims no job,
    it returns one row with that lane and NULLs.
    """
    # If a crash of the database loses a claim, its worker is no longer in the row and so cannot
    # settle the job. So the commit need not wait for the disk.
    choice = f"""
WITH RECURSIVE quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
{_choice(candidates, before, "quick,")}"""
    update = f"""
UPDATE tailrace_jobs_live j
SET state = 'running', attempt = j.attempt + 1, claim_no = j.claim_no + 1, worker = %(worker)s,
    begun = %(in_batch)s OR {_ONE_JOB},
    started_at = {clock.NOW}, lease_until = {clock.NOW} + make_interval(secs => %(lease)s),
    call_after = NULL, call_took = NULL
FROM kept LEFT JOIN tailrace_events_event e ON {probe("e.id", "kept.event_id")}
WHERE {probe("j.id", "kept.id")} AND {unindexed("j.state")} = 'pending'
RETURNING j.priority, extract(epoch FROM j.due_at - {clock.NOW})::float8, j.id, kept.awake,
          j.routing_key, j.payload, j.lane, j.attempt, j.claim_no, j.isolate,
          j.suspect_group, {RECORDED}
"""
    if lanes is None:
        return choice + update
    return f"""{choice}, claimed AS ({update})
SELECT {stopped_at(lanes)}, claimed.* FROM (SELECT) once LEFT JOIN claimed ON TRUE
"""


def _preview(candidates: str, before: str = "") -> str:
    """Return SQL that reads the candidates of a claim without locks: (id, isolate, whether it would
    be claimed), in the order of the claim."""
    # OFFSET 0 prevents the planner from merging subqueries, as the locks do in the claim.
    return f"""
WITH RECURSIVE {_choice(candidates, before).replace(LOCK, "OFFSET 0")}
SELECT id, isolate, id IN (SELECT id FROM kept) FROM candidate ORDER BY place
"""


_LIMIT = "%(limit)s"
CLAIM_PLAIN, PREVIEW_PLAIN = _claim(PLAIN), _preview(PLAIN)
CLAIM_PLAIN_SINCE = _claim(_PLAIN_SINCE)
"""As CLAIM_PLAIN, but only jobs with a due time after a bookmark: see `bookmarks`."""
CLAIM_FAIR, PREVIEW_FAIR = _claim(FAIR, _TURN, _LIMIT), _preview(FAIR, _TURN)
CLAIM_ONE_LANE = _claim(FAIR, _TURN_OF_ONE, "1")
PREVIEW_ONE_LANE = _preview(FAIR, _TURN_OF_ONE)
"""As CLAIM_FAIR, but only jobs of one lane, up to the batch size of that lane."""
CLAIM_ORDERED = _claim(ORDERED, _TURN_IN_ORDER, _LIMIT)
PREVIEW_ORDERED = _preview(ORDERED, _TURN_IN_ORDER)
CLAIM_FAIR_BY_PLACES = _claim(_FAIR_BY_PLACES, _TURN_BY_PLACES, _LIMIT)
"""As CLAIM_FAIR, but from each lane only as many jobs as calls to its destination may begin."""
