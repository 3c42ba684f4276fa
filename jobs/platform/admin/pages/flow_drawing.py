"""The graph of a flow's page and its tables, as their templates show them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from tailrace.db.query import database_now
from tailrace.jobs.models import Flow, Need
from tailrace.jobs.platform.inspection.details.relatives import NEED_LABELS
from tailrace.jobs.platform.inspection.display.formatting import STATE_LABELS, state_label
from tailrace.jobs.platform.inspection.flows.critical_path import PathStep
from tailrace.jobs.platform.inspection.flows.folding import FoldedGraph, Node, base_name
from tailrace.jobs.platform.inspection.flows.graph import Edge, FlowGraph, GraphJob
from tailrace.jobs.platform.inspection.flows.layout import (
    TEXT_HEIGHT,
    WIDTH,
    height_of,
    lay_out,
    left_of,
)

MAX_PARENTS = 10
"""Parents that a row of the table names."""
LABEL = 24
"""Characters of a label in the graph."""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    node: Node
    address: str
    label: str
    lines: list[tuple[int, str]]
    """The texts below the label, each with its distance from the upper edge."""
    title: str
    left: int
    height: int


def jobs_address(flow: Flow) -> str:
    return f"{reverse('admin:tailrace_jobs_job_changelist')}?flow={flow.pk}"


def drawing(flow: Flow, folded: FoldedGraph) -> dict[str, Any]:
    drawing = lay_out(folded)
    return {
        "width": drawing.width,
        "height": drawing.height,
        "node_width": WIDTH,
        "nodes": [_drawn(flow, node) for node in drawing.nodes],
        "lines": [
            {
                "path": each.path,
                "need": each.line.need,
                "title": (
                    f"{_name(each.line.child)} waits for {_name(each.line.parent)}:"
                    f" {NEED_LABELS[Need(each.line.need)]}"
                ),
            }
            for each in drawing.lines
        ],
    }


def _name(node: Node) -> str:
    return base_name(node.job.name) if node.is_folded else node.job.name


def _drawn(flow: Flow, node: Node) -> DrawnNode:
    name, job = _name(node), node.job
    if node.is_folded:
        texts = [f"{number:,} {STATE_LABELS[state]}" for state, number in node.counts.items()]
        total = f"{len(node.jobs):,} × "
        label = total + _shortened(name, LABEL - len(total))
        address = f"{jobs_address(flow)}{f'&queue={node.queue}' if node.queue else ''}"
        title = f"{name}: {len(node.jobs):,} jobs, {', '.join(texts)}"
    else:
        texts = [state_label(job)]
        label = _shortened(name, LABEL)
        address = reverse("admin:tailrace_jobs_job_change", args=[job.id])
        title = f"{name}: {texts[0]}, job {job.id} of {job.handler}"
        if job.is_outside:
            texts[0] += ", of another flow or none"
    lines = [(36 + TEXT_HEIGHT * number, text) for number, text in enumerate(texts)]
    return DrawnNode(
        node, address, label, lines, title, left_of(node.layer), round(height_of(node))
    )


def _shortened(name: str, room: int) -> str:
    """Return the name without its middle: names often differ at their ends."""
    if len(name) <= room:
        return name
    tail = max(room // 3, 1)
    return f"{name[: room - tail - 1]}…{name[-tail:]}"


# The tables


def bars(steps: list[PathStep]) -> list[dict[str, Any]]:
    """Return the steps of the critical path with their bars on one axis, in per cent."""
    if not steps:
        return []
    begun = steps[0].ready_at
    whole = max((steps[-1].ended_at - begun).total_seconds(), 0.000_001)

    def left_at(at: datetime) -> float:
        return max(100 * (at - begun).total_seconds() / whole, 0)

    return [
        {
            "step": step,
            "left": f"{left_at(step.ready_at):.2f}",
            "waited": f"{max(100 * step.waited / whole, 0.2):.2f}",
            "begun": f"{left_at(step.begun_at):.2f}",
            "ran": f"{max(100 * (step.ran or 0) / whole, 0.4):.2f}",
        }
        for step in steps
    ]


def rows_of(graph: FlowGraph, jobs: list[GraphJob]) -> list[dict[str, Any]]:
    """Return the facts of the jobs for the table."""
    parents, now = graph.parents(), database_now()
    return [
        {
            "job": job,
            "label": state_label(job),
            "parents": [_parent(graph, edge) for edge in parents.get(job.id, ())[:MAX_PARENTS]],
            "more_parents": max(len(parents.get(job.id, ())) - MAX_PARENTS, 0),
            "ran": (
                ((job.finished_at or now) - job.started_at).total_seconds()
                if job.started_at
                else None
            ),
        }
        for job in jobs
    ]


def _parent(graph: FlowGraph, edge: Edge) -> dict[str, Any]:
    need = "" if edge.need == Need.SUCCESS else NEED_LABELS[Need(edge.need)]
    return {"job": graph.jobs[edge.parent], "need": need}
