"""The kinds of claims: each has a statement, its parameters, and the preview that `explain` reads.

Which kind a claim is depends on the handler: `plain` without lanes, `ordered`, or one of the fair
kinds. The limits of a queue do not change the statement: see `claim`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailrace.db import clock
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.jobs.engine.claiming.claim_sql import statements
from tailrace.jobs.engine.waking.activity import BEGIN
from tailrace.jobs.handler import Handler


@dataclass(frozen=True, slots=True)
class Kind:
    claim: str
    """Makes jobs running and returns them. In lanes, each row begins with the lane at which the
    walk stopped early."""
    preview: str
    """Returns (id, isolate, whether the claim takes it) of the jobs that the claim chooses."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of both statements that other kinds do not have."""


_SEEN_AWAKE = """coalesce((
           SELECT awake FROM tailrace_jobs_queueactivity
           WHERE name BETWEEN %(handler)s AND %(handler)s ORDER BY name DESC, slice DESC LIMIT 1
         ), false)"""
_IN_A_DRAIN = {"begun": "", "awake": _SEEN_AWAKE, "unlimited": ""}

PLAIN = Kind(*statements("plain.sql", **_IN_A_DRAIN, since=""))
"""The due jobs of a queue, the most urgent first."""

BEGIN_PLAIN = Kind(
    *statements(
        "plain.sql",
        begun=f", begun AS ({BEGIN})",
        awake="false",
        unlimited="AND q.max_running IS NULL AND q.rate_limit IS NULL",
        since="",
    )
)
"""As PLAIN, and begin the drain in the same statement; no jobs if the queue has limits."""

_PLAIN_SINCE = statements(
    "plain.sql",
    **_IN_A_DRAIN,
    since=f"""AND due_at >= {clock.NOW}
        - make_interval(secs => (%(ages)s::float8[])[p.priority + 1])""",
)


def plain_since(ages: Sequence[float]) -> Kind:
    """As PLAIN, but only jobs with a due time after a bookmark: see `bookmarks`."""
    return Kind(*_PLAIN_SINCE, {"ages": number_array(ages)})


ORDERED = Kind(*statements("ordered.sql"))
"""The first pending job of each lane. Only under the claim lock of the queue."""

_ALL_LANES = {"before_turn": "", "count": "%(limit)s", "lane_count": "%(limit)s"}
_EQUAL_SHARE = "ceil(%(limit)s::numeric / greatest(count(*), 1))::int"

FAIR = Kind(
    *statements(
        "fair.sql",
        lanes_in_turn="lanes",
        **_ALL_LANES,
        share=_EQUAL_SHARE,
        jobs_of_lane="(SELECT share FROM shares)",
    )
)
"""Due jobs of as many lanes as the claim has jobs, the same number of each."""

# The first lane with a due job that can be locked decides about the batch. The walk then finds that
# job again, as a transaction does not pass over its own locks.
_ONE_BATCH_KEY = statements(
    "fair.sql",
    before_turn="""first_lane AS MATERIALIZED (
  SELECT split_part(lanes.lane, '/', -1) AS batch_key
  FROM lanes, LATERAL (
    SELECT FROM (VALUES (0), (1), (2), (3)) p (priority), LATERAL (
      SELECT id FROM tailrace_jobs_live
      WHERE handler = %(handler)s AND state = 'pending' AND lane = lanes.lane AND lane <> ''
        AND priority = p.priority AND due_at <= {now}
      ORDER BY due_at, id LIMIT 1 {lock}
    ) in_order
    WHERE p.priority >= lanes.priority LIMIT 1
  ) first
  LIMIT 1
),
batch AS MATERIALIZED (
  SELECT batch_key, least(coalesce((
    SELECT size FROM unnest(%(batch_keys)s::text[], %(sizes)s::int[]) sizes (key, size)
    WHERE sizes.key = batch_key), %(other_size)s), %(limit)s) AS size FROM first_lane
),""",
    lanes_in_turn="""(
    SELECT * FROM lanes WHERE split_part(lane, '/', -1) = (SELECT batch_key FROM batch)
  )""",
    count="(SELECT size FROM batch)",
    lane_count="1",
    share="ceil((SELECT size FROM batch)::numeric / greatest(count(*), 1))::int",
    jobs_of_lane="(SELECT share FROM shares)",
)


def one_batch_key(handler: Handler) -> Kind:
    """Due jobs with the batch key of the next lane in turn, up to the size of such a batch, the
    same number of each of their lanes."""
    sizes = handler.batch_sizes()
    keys = {"batch_keys": text_array(sizes), "sizes": number_array(sizes.values())}
    return Kind(*_ONE_BATCH_KEY, {"other_size": handler.batch_size, **keys})


_FAIR_BY_DESTINATION = statements(
    "fair.sql",
    lanes_in_turn="""(
    SELECT * FROM (
      SELECT lanes.*, %(per_lane)s - coalesce((
        SELECT in_use.count
        FROM unnest(%(lanes)s::text[], %(counts)s::int[]) in_use (lane, count)
        WHERE in_use.lane = lanes.lane), 0) AS places
      FROM lanes
    ) lanes
    WHERE places > 0
  )""",
    **_ALL_LANES,
    share=_EQUAL_SHARE,
    jobs_of_lane="least((SELECT share FROM shares), turn.places)",
)


def fair_by_destination(handler: Handler, in_use: Mapping[str, int]) -> Kind:
    """As FAIR, for lanes that are destinations: from each only as many jobs as calls to it may
    still begin in this process. `in_use`: the number of calls in flight by lane."""
    lanes = {"lanes": text_array(in_use), "counts": number_array(in_use.values())}
    return Kind(*_FAIR_BY_DESTINATION, {"per_lane": handler.per_destination, **lanes})


def in_lanes(handler: Handler, in_use: Mapping[str, int] | None = None) -> Kind:
    if handler.ordered:
        return ORDERED
    if handler.in_batches_by_key():
        return one_batch_key(handler)
    return FAIR if in_use is None else fair_by_destination(handler, in_use)
