"""Lay out the nodes of a drawing: a column for each layer, lines from left to right."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tailrace.jobs.platform.inspection.flows.folding import FoldedGraph, Line, Node

WIDTH, GAP_X, GAP_Y, MARGIN = 184, 64, 14, 8
HEIGHT = 46
"""Of a node of one job, in pixels; one that is folded has a line of text for each state."""
TEXT_HEIGHT = 16
BEND_HEIGHT = 6
MAX_BENDS = 400
"""Bends of all lines; above this, lines go straight, behind nodes."""


@dataclass(slots=True, eq=False)
class Bend:
    """Where a line passes a layer without a node of its own."""

    layer: int
    y: float = 0.0


Item = Node | Bend


@dataclass(frozen=True, slots=True)
class DrawnLine:
    line: Line
    path: str
    """For the attribute `d` of an SVG path."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Sizes are in pixels."""

    width: int
    height: int
    nodes: list[Node]
    lines: list[DrawnLine]


def height_of(item: Item) -> float:
    if isinstance(item, Bend):
        return BEND_HEIGHT
    return HEIGHT + TEXT_HEIGHT * (len(item.counts) - 1)


def left_of(layer: int) -> int:
    return MARGIN + layer * (WIDTH + GAP_X)


def lay_out(graph: FoldedGraph) -> Drawing:
    """Set the positions of the nodes, and return the drawing."""
    routes = _routes(graph.lines)
    columns: dict[int, list[Item]] = defaultdict(list)
    for node in graph.nodes:
        columns[node.layer].append(node)
    for route in routes:
        for bend in route[1:-1]:
            columns[bend.layer].append(bend)
    ordered = [columns[layer] for layer in sorted(columns)]
    _reduce_crossings(ordered, routes)
    height = max(map(_height, ordered), default=0)
    for column in ordered:
        _stack(column, MARGIN + (height - _height(column)) / 2)
    last = max((node.layer for node in graph.nodes), default=0)
    return Drawing(
        left_of(last) + WIDTH + MARGIN,
        round(height) + 2 * MARGIN,
        graph.nodes,
        [DrawnLine(line, _path(route)) for line, route in zip(graph.lines, routes, strict=True)],
    )


def _routes(lines: Sequence[Line]) -> list[list[Item]]:
    """Return the nodes and bends that each line joins."""
    bends = sum(max(line.child.layer - line.parent.layer - 1, 0) for line in lines)
    return [
        [
            line.parent,
            *(
                map(Bend, range(line.parent.layer + 1, line.child.layer))
                if bends <= MAX_BENDS
                else ()
            ),
            line.child,
        ]
        for line in lines
    ]


def _reduce_crossings(columns: list[list[Item]], routes: Sequence[Sequence[Item]]) -> None:
    """Sort each column by the mean position of its parents, then by that of its children."""
    before: dict[Item, list[Item]] = defaultdict(list)
    after: dict[Item, list[Item]] = defaultdict(list)
    for route in routes:
        for left, right in pairwise(route):
            before[right].append(left)
            after[left].append(right)
    position: dict[Item, float] = {}
    for column in columns:
        position |= _positions(column)
    for neighbours, order in ((before, columns), (after, columns[::-1]), (before, columns)):
        for column in order:
            means = {item: _mean(position, item, neighbours[item]) for item in column}
            column.sort(key=means.__getitem__)
            position |= _positions(column)


def _positions(column: Sequence[Item]) -> dict[Item, float]:
    return {item: (number + 0.5) / len(column) for number, item in enumerate(column)}


def _mean(position: dict[Item, float], item: Item, neighbours: Sequence[Item]) -> float:
    if not neighbours:
        return position[item]
    return sum(position[each] for each in neighbours) / len(neighbours)


def _height(column: Sequence[Item]) -> float:
    return sum(map(height_of, column)) + GAP_Y * (len(column) - 1)


def _stack(column: Sequence[Item], top: float) -> None:
    for each in column:
        each.y = round(top)
        top += height_of(each) + GAP_Y


def _path(route: Sequence[Item]) -> str:
    """Return a smooth path from the right of the first item to the left of the last one."""
    x, y = left_of(route[0].layer) + WIDTH, _middle(route[0])
    parts = [f"M{x} {y}"]
    for each in route[1:]:
        to_x, to_y = left_of(each.layer), _middle(each)
        half = (x + to_x) // 2 if to_x > x else x + GAP_X // 2
        parts.append(f"C{half} {y} {half} {to_y} {to_x} {to_y}")
        if isinstance(each, Bend):
            to_x += WIDTH
            parts.append(f"H{to_x}")
        x, y = to_x, to_y
    return "".join(parts)


def _middle(item: Item) -> int:
    return round(item.y + height_of(item) / 2)
