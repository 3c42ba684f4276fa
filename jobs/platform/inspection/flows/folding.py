"""Fold similar jobs in one layer of a flow into one node of its drawing."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from tailrace.jobs.platform.inspection.flows.graph import FlowGraph, GraphJob
from tailrace.jobs.runtime.states import State

MAX_NODES = 200
MAX_LINES = 600
FOLDED = 12
"""More jobs of one kind than this become one node."""
# Of a group (`page-7`), of a part of a flow (`album-7/read`), of jobs added by a job (`page@9`).
_NUMBER = re.compile(r"(-\d+)(?=/|@|$)|@\d+$")
WORST_FIRST = (
    State.FAILED, State.RUNNING, State.PENDING, State.WAITING, State.CANCELLED, State.COMPLETED,
    State.SKIPPED,
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Node:
    """A job, or several that are alike."""

    layer: int
    jobs: list[GraphJob]
    y: float = 0.0
    """Of its upper edge, in pixels."""

    @property
    def job(self) -> GraphJob:
        return self.jobs[0]

    @property
    def is_folded(self) -> bool:
        return len(self.jobs) > 1

    @property
    def counts(self) -> dict[str, int]:
        """The number of its jobs by state."""
        counts = Counter(job.state for job in self.jobs)
        return {state.value: counts[state] for state in WORST_FIRST if counts[state]}

    @property
    def state(self) -> str:
        """The state of its jobs that needs the most attention."""
        return next(iter(self.counts))

    @property
    def queue(self) -> str:
        """The queue of its jobs; empty if they are of several."""
        queues = {job.handler for job in self.jobs}
        return self.job.handler if len(queues) == 1 else ""


@dataclass(frozen=True, slots=True)
class Line:
    """Jobs of one node wait for jobs of another one."""

    parent: Node
    child: Node
    need: str
    edges: int


@dataclass(frozen=True, slots=True)
class FoldedGraph:
    nodes: list[Node]
    lines: list[Line]
    jobs_left_out: int
    lines_left_out: int


def base_name(name: str) -> str:
    """Return a name without the numbers that tell similar jobs apart: `album/page` for
    `album-7/page-12@99`."""
    return _NUMBER.sub("", name)


Kind = Callable[[GraphJob], str]
_KINDS: tuple[tuple[Kind, int], ...] = (
    (lambda job: base_name(job.name), FOLDED),
    (lambda job: base_name(job.name), 1),
    (lambda job: job.handler, 1),
)
"""How jobs are folded, and how many of a kind stay single: the next way, if too many nodes are
left."""


def fold(graph: FlowGraph) -> FoldedGraph:
    """Return at most MAX_NODES nodes and MAX_LINES lines; the first layers are kept."""
    layers = graph.layers()
    for kind, single in _KINDS:
        nodes = _nodes(graph, layers, kind, single)
        if len(nodes) <= MAX_NODES:
            break
    kept, left_out = nodes[:MAX_NODES], nodes[MAX_NODES:]
    lines = _lines(graph, kept)
    jobs_left_out = sum(len(node.jobs) for node in left_out)
    return FoldedGraph(kept, lines[:MAX_LINES], jobs_left_out, len(lines[MAX_LINES:]))


def _nodes(graph: FlowGraph, layers: dict[int, int], kind: Kind, single: int) -> list[Node]:
    groups: dict[tuple[int, bool, str], list[GraphJob]] = defaultdict(list)
    for job in graph.jobs.values():
        groups[layers[job.id], job.is_outside, kind(job)].append(job)
    nodes = chain.from_iterable(
        [Node(layer, jobs)] if len(jobs) > single else [Node(layer, [job]) for job in jobs]
        for (layer, _is_outside, _kind), jobs in groups.items()
    )
    return sorted(nodes, key=lambda node: (node.layer, node.job.id))


def _lines(graph: FlowGraph, nodes: list[Node]) -> list[Line]:
    node_of = {job.id: node for node in nodes for job in node.jobs}
    counts = Counter(
        (node_of[edge.parent], node_of[edge.job], edge.need)
        for edge in graph.edges
        if edge.parent in node_of and edge.job in node_of
    )
    return [Line(*key, edges) for key, edges in counts.items()]
