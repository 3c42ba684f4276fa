"""Flows in some states, for the tests of their pages and of the API."""

from collections.abc import Iterable
from datetime import timedelta

from tailrace.db import clock
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.models import Flow, Job
from tests.sandbox.handlers import Other, Working

VIEW = ("tailrace_jobs.view_flow", "tailrace_jobs.view_job")
CHANGE = (*VIEW, "tailrace_jobs.change_flow_state")


def register_handlers() -> None:
    registry.clear()
    sync_declared.sync()


def diamond(name: str = "diamond") -> Flow:
    """Create a flow: after `a` come `b` and `c`, and then `d`; `clean` runs if `d` fails."""
    flow = NewFlow(name)
    flow.add(Working, {"note": "a"}, name="a")
    flow.group(Working, [{"note": "b"}, {"note": "c"}], name="page", after="a")
    flow.add(Other, name="d", after=["page-1", "page-2"])
    flow.add(Other, name="clean", after_failure="d")
    flow.add(Other, name="report", after_end="d")
    return Flow.objects.get(pk=flow.enqueue())


def fan_out(pages: int, name: str = "fan-out") -> Flow:
    flow = NewFlow(name)
    flow.add(Working, name="stage")
    group = flow.group(Working, [None] * pages, name="page", after="stage")
    flow.add(Other, name="publish", after=group)
    flow.add(Other, name="remove files", after_end=group)
    return Flow.objects.get(pk=flow.enqueue())


def chain(length: int, name: str = "chain") -> Flow:
    flow = NewFlow(name)
    flow.chain([Working] * length)
    return Flow.objects.get(pk=flow.enqueue())


def ended(flow: Flow, names: Iterable[str], state: str, begun: float, took: float) -> None:
    """Let jobs begin `begun` seconds after the flow, and end in this state."""
    start = flow.created_at + timedelta(seconds=begun)
    Job.objects.filter(flow_id=flow.pk, flow_name__in=list(names)).update(
        state=state, started_at=start, finished_at=start + timedelta(seconds=took)
    )


def created_before(flow: Flow, seconds: float) -> None:
    """Let the flow and its jobs be as old as that."""
    at = clock.now() - timedelta(seconds=seconds)
    Flow.objects.filter(pk=flow.pk).update(created_at=at)
    Job.objects.filter(flow_id=flow.pk).update(created_at=at, due_at=at)
    flow.refresh_from_db()
