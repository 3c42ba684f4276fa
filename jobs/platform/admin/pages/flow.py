"""The page of a flow: its state, the graph of its jobs, what took the time, and its buttons."""

import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from tailrace.jobs.flows import actions
from tailrace.jobs.flows.state import FlowState, FlowStatus, status
from tailrace.jobs.models import Flow
from tailrace.jobs.platform.admin.pages.flow_drawing import bars, drawing, jobs_address, rows_of
from tailrace.jobs.platform.inspection import visibility
from tailrace.jobs.platform.inspection.display.formatting import STATE_LABELS, count
from tailrace.jobs.platform.inspection.flows.critical_path import critical_path
from tailrace.jobs.platform.inspection.flows.folding import fold
from tailrace.jobs.platform.inspection.flows.graph import read_graph
from tailrace.jobs.platform.inspection.flows.masking import mask_names

MAX_ROWS = 50
"""Jobs of a flow whose facts are also in a table."""
POLL, POLL_LARGE = 3, 15
"""Seconds after which a page with few or many jobs is updated."""
LARGE = 1_000
BADGES = {
    FlowState.WITH_FAILURES: "failed",
    FlowState.OVERDUE: "failed",
}
"""The classes in `state_badges.css` of states that have no class of their own."""


def page_of(request: HttpRequest, flow: Flow) -> dict[str, Any]:
    """Return the template context of a flow's page, masked for the user."""
    now = status(flow)
    return {"buttons": _buttons(request, flow, now)} | live_part(request, flow, now)


def live_view(request: HttpRequest, id: int) -> HttpResponse:
    """Return the parts of a flow's page that are polled; 204 if they have not changed."""
    visibility.require(request, visibility.VIEW_FLOW, visibility.VIEW_JOB)
    flow = get_object_or_404(Flow, pk=id)
    now = status(flow)
    if request.GET.get("version") == version(now):
        return HttpResponse(status=204)
    part = live_part(request, flow, now, request.GET.get("shown", ""))
    return render(request, "tailrace/jobs/admin/flow/polled.html", part)


def version(now: FlowStatus) -> str:
    """Return a string that changes when a job of the flow begins or ends."""
    facts = (now.state.value, sorted(now.counts.items()))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def live_part(request: HttpRequest, flow: Flow, now: FlowStatus, shown: str = "") -> dict[str, Any]:
    """Return the context of the polled parts; `shown` is the state that the buttons are for."""
    graph = read_graph(flow.pk)
    folded = fold(graph)
    steps, has_earlier = critical_path(graph)
    rows = [job for job in graph.jobs.values() if not job.is_outside]
    rows = rows if len(rows) <= MAX_ROWS else []
    jobs = [*(node.job for node in folded.nodes), *(step.job for step in steps), *rows]
    mask_names(visibility.user_of(request), jobs)
    return {
        "flow": flow,
        "status": now,
        "badge": BADGES.get(now.state, now.state.value),
        "version": version(now),
        "shown_state": shown or now.state.value,
        "is_stale": bool(shown) and shown != now.state.value,
        "seconds": POLL if now.jobs < LARGE else POLL_LARGE,
        "bar": _bar(now),
        "jobs_address": jobs_address(flow),
        "drawing": drawing(flow, folded),
        "left_out": folded,
        "is_whole": graph.is_whole,
        "needs": {line.need for line in folded.lines},
        "path": bars(steps),
        "has_earlier": has_earlier,
        "rows": rows_of(graph, rows),
    }


def outcome_text(action: actions.FlowAction, outcome: actions.FlowOutcome) -> str:
    """Return what an action did, as a message."""
    words = {
        "pause": "held back", "resume": "released", "retry": "run again", "cancel": "cancelled",
    }  # fmt: skip
    text = f"The flow was {action.past}: {count(outcome.changed, 'job')} {words[action.name]}."
    if outcome.stop_requested:
        text += f" {count(outcome.stop_requested, 'job')} running: stop requested."
    for why, number in outcome.refused.items():
        text += f" {count(number, 'job')} not changed: {why}."
    return text


def _buttons(request: HttpRequest, flow: Flow, now: FlowStatus) -> dict[str, str]:
    """Return the addresses of the actions that the user may perform now."""
    if not request.user.has_perm(actions.PERMISSION):
        return {}
    possible = [name for name, each in actions.FLOW_ACTIONS.items() if each.is_possible(now)]
    return {
        name: reverse(f"admin:tailrace_jobs_flow_{name}", args=[flow.pk])
        for name in [*possible, "replay"]
    }


def _bar(now: FlowStatus) -> list[dict[str, Any]]:
    """Return the parts of the progress bar: finished jobs first."""
    order = ("completed", "skipped", "cancelled", "failed", "running", "pending", "waiting")
    parts, left = [], 0.0
    for state in order:
        if number := now.counts.get(state, 0):
            width = 100 * number / now.jobs
            parts.append(
                {
                    "state": state, "label": STATE_LABELS[state], "number": number,
                    "left": f"{left:.2f}", "width": f"{width:.2f}",
                }
            )  # fmt: skip
            left += width
    return parts
