"""The overview as people use it: it moves by itself, and fits where it is looked at."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from events.models import Event
from tests.jobs import operator_case as case

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
RIGHTS = ("view_event", "acknowledge_event", "view_job", "view_queue", "replay_job", "pause_queue")


@pytest.fixture
def keeper(staff: Callable[..., User]) -> User:
    case.declare()
    return staff("keeper", *(f"any.{right}" for right in RIGHTS))


def _overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def test_what_happens_appears_by_itself_and_the_focus_stays(
    keeper: User, visit: Callable[..., Page]
) -> None:
    page = visit(keeper, "/")
    name = page.locator(f"[id='queue-{case.Trim.name}']")
    name.focus()
    case.job(error="the oil is out")
    expect(page.locator("#panel-failed-jobs")).to_contain_text("the oil is out", timeout=15_000)
    expect(name).to_be_focused()


def test_a_table_stays_where_it_was_scrolled_to(keeper: User, visit: Callable[..., Page]) -> None:
    page = visit(keeper, "/", width=375)
    table = page.locator("#panel-queues .tr-scroll")
    table.evaluate("(it) => { it.scrollLeft = 120 }")
    case.job(error="the oil is out")
    expect(page.locator("#panel-failed-jobs")).to_contain_text("the oil is out", timeout=15_000)
    assert table.evaluate("(it) => it.scrollLeft") == 120


def test_a_flagged_event_is_acknowledged_in_place(keeper: User, visit: Callable[..., Page]) -> None:
    event = Event.objects.create(source="t", source_id="1", type="x", problem="such an odd thing")
    page = visit(keeper, "/")
    page.click(f"#acknowledge-{event.pk}")
    expect(page.locator("#panel-quarantined-and-flagged-events")).to_contain_text("None.")
    assert page.url.endswith("/")
    assert Event.objects.flagged().count() == 0


def test_a_server_that_does_not_answer_is_told_of(keeper: User, visit: Callable[..., Page]) -> None:
    page = visit(keeper, "/")
    expect(page.locator("#away")).to_be_hidden()
    page.route("**/overview/panels", lambda route: route.fulfill(status=204))
    page.evaluate("document.body.dispatchEvent(new Event('htmx:sendError'))")
    expect(page.locator("#away")).to_be_visible()
    page.unroute("**/overview/panels")
    expect(page.locator("#away")).to_be_hidden(timeout=15_000)


@pytest.mark.parametrize("width", [375, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_the_screen(
    keeper: User, visit: Callable[..., Page], width: int, scheme: str
) -> None:
    event = Event.objects.create(source="t", source_id="1", type="x" * 60, problem="odd " * 60)
    job = case.job(error="no-space" * 60, event=event, routing_key="r" * 90)
    page = visit(keeper, "/", width=width, scheme=scheme)
    assert _overflow(page) <= 0
    for address in (
        f"/admin/events/event/{event.pk}/change/",
        "/admin/jobs/job/",
        f"/admin/jobs/job/{job.pk}/change/",
        "/admin/jobs/queue/",
    ):
        page.goto(address)
        assert _overflow(page) <= 0, address


def test_a_job_is_replayed_with_its_button(keeper: User, visit: Callable[..., Page]) -> None:
    job = case.job()
    page = visit(keeper, f"/admin/jobs/job/{job.pk}/change/")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("body")).to_contain_text("1 job replayed.")
    job.refresh_from_db()
    assert job.state == "pending"


def test_all_failed_jobs_of_a_filter_are_replayed_from_the_list(
    keeper: User, visit: Callable[..., Page]
) -> None:
    for _ in range(60):
        case.job()
    page = visit(keeper, "/admin/jobs/job/?state=failed")
    page.locator("#action-toggle").check()
    page.get_by_text("Select all matching jobs").click()
    page.locator("select[name=action]").select_option("replay_jobs")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("body")).to_contain_text("60 jobs replayed.")


def test_a_queue_is_paused_and_resumed_with_its_buttons(
    keeper: User, visit: Callable[..., Page]
) -> None:
    page = visit(keeper, "/admin/jobs/queue/")
    page.get_by_role("link", name=case.Trim.name, exact=True).click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("body")).to_contain_text(f"{case.Trim.name}: paused.")
    page.get_by_role("link", name=case.Trim.name, exact=True).click()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("body")).to_contain_text(f"{case.Trim.name}: resumed.")
