"""The chain of an event: its causes, its effects, and the jobs of each of these events.

    cause ──► cause ──► event ──► effects ──► their effects

An event has at most one cause, so a chain is a tree. A small tree is shown as a whole. Of a large
one only the causes of the event, one above the other, and the effects of the event are shown.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import User

from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.events.models import Event
from tailrace.events.privacy.visibility import hidden_from
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.details.event_states import (
    FAILURES,
    IN_PROGRESS,
    NO_JOBS,
    SETTLED,
    event_states,
)
from tailrace.jobs.runtime.states import LIVE

MAX_EVENTS = 60
"""Events of a chain that are shown, in addition to the causes of the event."""
MAX_LEVELS = 20
"""Causes that are shown above an event, and levels of effects below it."""
MAX_EFFECTS = 20
"""Effects that are shown of one event."""
MAX_JOBS = 8
"""Jobs that are shown of one event."""

STYLES = {NO_JOBS: "skipped", FAILURES: "failed", IN_PROGRESS: "running", SETTLED: "completed"}
Effects = dict[int, list[int]]
"""The ids of the direct effects of each event, by the id of the event."""


@dataclass(slots=True, eq=False)
class Node:
    event: Event
    title: str
    state: str
    """The common state of its jobs."""
    jobs: list[Job]
    has_more_jobs: bool
    has_more_effects: bool
    """Whether the event has more effects than `effects` contains."""
    effects: "list[Node]" = field(default_factory=list)

    @property
    def style(self) -> str:
        """The state of a job that is displayed in the same style as the state of this event."""
        return STYLES[self.state]


@dataclass(slots=True, eq=False)
class Chain:
    roots: list[Node]
    """Events whose causes are not shown, with their effects."""

    def nodes(self) -> Iterator[tuple[int, Node]]:
        """Yield (level, node) for all nodes, each node before its effects."""
        yield from _walk(self.roots, 0)

    def is_under_way(self) -> bool:
        """Return whether one of the shown jobs is unfinished."""
        return any(job.state in LIVE for _, node in self.nodes() for job in node.jobs)


def chain_of(event_id: int, user: User | None, *, handlers: str = "") -> Chain:
    """Return the chain of this event.

    Events that the user may not read are left out, with their jobs; the effects of such an event
    are shown below its cause. `user` is None for an operator at a shell, who sees all events.
    `handlers` limits the jobs to handlers whose names begin with it.
    """
    causes = _causes(event_id)
    effects, cut = _effects(causes[-1])
    if cut or event_id not in _members(causes[-1], effects):
        effects, cut = _effects(event_id, causes)
        for cause, effect in zip(reversed(causes), reversed(causes[:-1]), strict=False):
            effects[cause] = [effect]
        cut |= _with_other_effects(causes[1:])
    ids = _members(causes[-1], effects)
    shown = set(ids) - (hidden_from(user, ids) if user is not None else set())
    nodes = _nodes(shown, cut, handlers)
    return Chain(_tree([causes[-1]], effects, nodes))


_CAUSES = """
WITH RECURSIVE chain (id, cause_id, level) AS (
  SELECT id, cause_id, 0 FROM tailrace_events_event WHERE id = %(id)s
  UNION ALL
  SELECT e.id, e.cause_id, level + 1 FROM chain
    JOIN tailrace_events_event e ON e.id = chain.cause_id
  WHERE level < %(most)s
)
SELECT id FROM chain ORDER BY level
"""


def _causes(event_id: int) -> list[int]:
    """Return the ids of the event, of its cause, and so on, at most MAX_LEVELS causes."""
    ids = [id for (id,) in query(_CAUSES, id=event_id, most=MAX_LEVELS)]
    return list(dict.fromkeys(ids)) or [event_id]


# The order by the index's own column leaves the planner only that index, and no sort: an event may
# have a million effects.
_EFFECTS = """
SELECT c.id, e.id FROM unnest(%(ids)s::bigint[]) AS c (id), LATERAL (
  SELECT id FROM tailrace_events_event WHERE cause_id >= c.id AND cause_id <= c.id
  ORDER BY cause_id LIMIT %(most)s
) e
"""


def _effects(root: int, causes: Collection[int] = ()) -> tuple[Effects, set[int]]:
    """Return the effects of this event and of its effects, level by level, without its `causes`,
    and the ids of the events that have more effects than that."""
    known = {root, *causes}
    effects: Effects = {}
    cut: set[int] = set()
    level, room = [root], MAX_EVENTS
    for number in range(MAX_LEVELS + 1):
        by_cause = _direct_effects(level)
        if number == MAX_LEVELS:  # this level is not shown: it only says which events have more
            cut |= by_cause.keys()
            break
        level = []
        for cause, ids in by_cause.items():
            new = [id for id in ids if id not in known]
            kept = new[: min(MAX_EFFECTS, room)]
            if len(kept) < len(new):
                cut.add(cause)
            effects[cause] = kept
            known |= set(kept)
            room -= len(kept)
            level += kept
        if not level:
            break
    return effects, cut


def _direct_effects(ids: Sequence[int]) -> Effects:
    by_cause: Effects = defaultdict(list)
    for cause, id in query(_EFFECTS, ids=number_array(ids), most=MAX_EFFECTS + 1):
        by_cause[cause].append(id)
    return {cause: sorted(by_cause[cause]) for cause in sorted(by_cause)}


def _with_other_effects(causes: Sequence[int]) -> set[int]:
    return {cause for cause, ids in _direct_effects(causes).items() if len(ids) > 1}


def _members(root: int, effects: Effects) -> list[int]:
    """Return the ids of all events of the tree below `root`, with `root`."""
    ids = [root]
    for id in ids:
        ids += effects.get(id, ())
    return ids


_JOBS = """
SELECT j.id FROM unnest(%(ids)s::bigint[]) AS e (id), LATERAL (
  SELECT id FROM tailrace_jobs_job WHERE event_id = e.id
    AND starts_with(handler, %(handlers)s::text)
  LIMIT %(most)s
) j
"""


def _nodes(ids: Collection[int], cut: Collection[int], handlers: str) -> dict[int, Node]:
    jobs: dict[int, list[Job]] = defaultdict(list)
    rows = query(_JOBS, ids=number_array(sorted(ids)), handlers=handlers, most=MAX_JOBS + 1)
    for job in Job.objects.filter(pk__in=[id for (id,) in rows]).defer("payload", "result"):
        jobs[job.event_id or 0].append(job)
    states = event_states(ids, handlers)
    return {
        event.pk: Node(
            event,
            title=event.type.rpartition(".")[2].replace("_", " "),
            state=states.get(event.pk, NO_JOBS),
            jobs=sorted(jobs[event.pk], key=lambda job: job.pk)[:MAX_JOBS],
            has_more_jobs=len(jobs[event.pk]) > MAX_JOBS,
            has_more_effects=event.pk in cut,
        )
        for event in Event.objects.filter(pk__in=ids).defer("payload")
    }


def _tree(ids: Iterable[int], effects: Effects, nodes: dict[int, Node]) -> list[Node]:
    """Return the nodes of these events. An event without a node is replaced by its effects."""
    tree = []
    for id in ids:
        below = _tree(effects.get(id, ()), effects, nodes)
        if node := nodes.get(id):
            node.effects = below
            tree.append(node)
        else:
            tree += below
    return tree


def _walk(nodes: Sequence[Node], level: int) -> Iterator[tuple[int, Node]]:
    for node in nodes:
        yield level, node
        yield from _walk(node.effects, level + 1)
