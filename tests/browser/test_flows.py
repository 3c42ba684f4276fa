"""The page of a flow: its graph fits, and is updated in place while the flow is under way."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.jobs.flows.operations import cancel_flow, pause_flow
from tailrace.jobs.models import Flow
from tests.browser.screens import look, take_picture
from tests.jobs.admin import flows

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
RIGHTS = (*flows.CHANGE, "tailrace_jobs.view_job_payload")


def _address(flow: Flow, name: str = "change") -> str:
    return f"/admin/tailrace_jobs/flow/{flow.pk}/{name}/"


def _failed_diamond() -> Flow:
    flow = flows.diamond("import the photos of March")
    flows.created_before(flow, 120)
    flows.ended(flow, ["a"], "completed", 2, 20)
    flows.ended(flow, ["page-1"], "completed", 23, 3)
    flows.ended(flow, ["page-2"], "failed", 30, 40)
    flows.ended(flow, ["d"], "cancelled", 70, 0)
    flows.ended(flow, ["clean"], "running", 71, 0)
    return flow


def test_a_flow_fits_and_is_updated_in_place(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> None:
    flows.register_handlers()
    flow = _failed_diamond()
    page = visit(staff("keeper", *RIGHTS), _address(flow))
    look(page, "flow-diamond")
    node = page.get_by_role("link", name="a: completed")
    node.focus()
    flows.ended(flow, ["report"], "completed", 71, 1)
    expect(page.get_by_role("link", name="report: completed")).to_be_visible()
    expect(page.get_by_role("link", name="a: completed")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=f"flow {flow.pk}")).to_be_visible()


def test_a_graph_keeps_its_place_when_it_is_updated(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> None:
    flows.register_handlers()
    flow = flows.chain(20)
    page = visit(staff("keeper", *RIGHTS), _address(flow))
    look(page, "flow-chain")
    graph = page.get_by_role("region", name="Graph of the jobs")
    graph.evaluate("(it) => { it.scrollLeft = 700 }")
    flows.ended(flow, ["work"], "completed", 1, 1)
    expect(page.get_by_text("1 of 20 jobs ended")).to_be_visible()
    assert graph.evaluate("(it) => it.scrollLeft") == 700


def test_a_large_flow_fits(staff: Callable[..., User], visit: Callable[..., Page]) -> None:
    flows.register_handlers()
    flow = flows.fan_out(10_000)
    flows.created_before(flow, 4000)
    flows.ended(flow, ["stage"], "completed", 1, 60)
    flows.ended(flow, [f"page-{n}" for n in range(1, 7001)], "completed", 70, 9)
    flows.ended(flow, [f"page-{n}" for n in range(7001, 7013)], "failed", 70, 9)
    page = visit(staff("keeper", *RIGHTS), _address(flow))
    expect(page.get_by_role("link", name="page: 10,000 jobs")).to_be_visible()
    look(page, "flow-fan-out")


def test_the_list_and_the_actions_of_flows_fit(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> None:
    flows.register_handlers()
    flows.chain(3, "a chain")
    paused, cancelled = flows.diamond("paused"), flows.diamond("cancelled")
    pause_flow(paused, "ann")
    cancel_flow(cancelled, "ann", clean_up=False)
    _failed_diamond()
    page = visit(staff("keeper", *RIGHTS), "/admin/tailrace_jobs/flow/")
    look(page, "flows")
    page.goto(_address(paused, "replay"))
    look(page, "flow-replay")
    page.goto(_address(cancelled))
    look(page, "flow-cancelled")
    page.goto(_address(paused))
    page.get_by_text("Cancel…").click()
    take_picture(page, "flow-cancel")
    page.reload()
    look(page, "flow-paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
