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


PLAIN = Kind(*statements("plain.sql", since=""))
"""The due jobs of a queue, the most urgent first."""

_PLAIN_SINCE = statements(
    "plain.sql",
    since=f"""AND due_at >= {clock.NOW}
        - make_interval(secs => (%(ages)s::float8[])[p.priority + 1])""",
)


def plain_since(ages: Sequence[float]) -> Kind:
    """As PLAIN, but only jobs with a due time after a bookmark: see `bookmarks`."""
    return Kind(*_PLAIN_SINCE, {"ages": number_array(ages)})


ORDERED = Kind(*statements("ordered.sql"))
"""The first pending job of each lane. Only under the claim lock of the queue."""

_EQUAL_SHARE = "ceil(%(limit)s::numeric / greatest(count(*), 1))::int"

FAIR = Kind(
    *statements(
        "fair.sql",
        lanes_in_turn="lanes",
        lane_count="%(limit)s",
        share=_EQUAL_SHARE,
        jobs_of_lane="(SELECT share FROM shares)",
    )
)
"""Due jobs of as many lanes as the claim has jobs, the same number of each."""

_ONE_LANE = statements(
    "fair.sql",
    lanes_in_turn="lanes",
    lane_count="1",
    share="""least(coalesce((
    SELECT size FROM unnest(%(lanes)s::text[], %(sizes)s::int[]) sizes (lane, size)
    WHERE sizes.lane = turn.lane), %(other_lanes)s), %(limit)s)""",
    jobs_of_lane="(SELECT share FROM shares)",
)


def one_lane(handler: Handler) -> Kind:
    """Due jobs of the next lane in turn, up to the batch size of that lane."""
    sizes = handler.batch_sizes()
    lanes = {"lanes": text_array(sizes), "sizes": number_array(sizes.values())}
    return Kind(*_ONE_LANE, {"other_lanes": handler.batch_size, **lanes})


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
    lane_count="%(limit)s",
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
    if handler.in_batches_by_lane():
        return one_lane(handler)
    return FAIR if in_use is None else fair_by_destination(handler, in_use)
