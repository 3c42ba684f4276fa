"""The overview as people use it: it updates itself, and fits small and wide screens."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from playwright.sync_api import Page, expect

from tailrace.db import clock
from tailrace.events.models import Event
from tailrace.jobs.models import FailureGroup, Job, Pulse
from tests.browser.screens import SCREENS, assert_fits, look_at
from tests.jobs import operators

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
RIGHTS = (
    "view_event", "acknowledge_event", "view_job", "view_job_payload", "view_queue", "replay_job",
    "pause_queue",
)  # fmt: skip


@pytest.fixture
def operator(staff: Callable[..., User]) -> User:
    operators.register_handlers()
    return staff("operator", *(f"any.{right}" for right in RIGHTS))


def test_what_happens_appears_by_itself_and_nothing_else_changes(
    operator: User, visit: Callable[..., Page]
) -> None:
    operators.due(1)
    page = visit(operator, "/")
    name = page.locator(f"[id='queue-{operators.Trim.name}']")
    name.focus()
    page.locator("#quiet-queues summary").click()
    name.focus()
    page.evaluate("getSelection().selectAllChildren(document.getElementById('title-queues'))")
    operators.job(error="the oil is out")
    expect(page.locator("#panel-failed-jobs")).to_contain_text("the oil is out")
    expect(name).to_be_focused()
    assert page.evaluate("getSelection().toString()") == "Queues"
    expect(page.locator("#quiet-queues ul")).to_be_visible()
    page.locator("#quiet-queues summary").click()
    operators.job(error="the wick is out")
    expect(page.locator("#panel-failed-jobs")).to_contain_text("the wick is out")
    expect(page.locator("#quiet-queues ul")).to_be_hidden()


def test_numbers_are_seen_on_a_telephone_without_scrolling_sideways(
    operator: User, visit: Callable[..., Page]
) -> None:
    for _ in range(3):
        operators.due(1)
    page = visit(operator, "/", width=375)
    table = page.locator("#panel-queues .tr-scroll").first
    assert table.evaluate("(it) => it.scrollWidth - it.clientWidth") <= 0
    row = page.locator(f"[id='row-{operators.Trim.name}']")
    expect(row.locator("td:visible")).to_have_text(["waiting", "3", "0", "0"])


def test_a_flagged_event_is_acknowledged_in_place(
    operator: User, visit: Callable[..., Page]
) -> None:
    event = Event.objects.create(source="t", source_id="1", type="x", problem="such an odd thing")
    page = visit(operator, "/")
    page.click(f"#acknowledge-{event.pk}")
    expect(page.locator("#panel-quarantined-and-flagged-events")).to_contain_text("None.")
    assert page.url.endswith("/")
    assert Event.objects.flagged().count() == 0


def test_a_server_that_does_not_answer_is_told_of(
    operator: User, visit: Callable[..., Page]
) -> None:
    page = visit(operator, "/")
    expect(page.locator("#away")).to_be_hidden()
    page.route("**/overview/panels", lambda route: route.fulfill(status=204))
    page.evaluate("document.body.dispatchEvent(new Event('htmx:sendError'))")
    expect(page.locator("#away")).to_be_visible()
    page.unroute("**/overview/panels")
    expect(page.locator("#away")).to_be_hidden()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_pages_fit_the_screen(
    operator: User, visit: Callable[..., Page], width: int, scheme: str
) -> None:
    event = Event.objects.create(source="t", source_id="1", type="x" * 60, problem="odd " * 60)
    job = operators.job(error="no-space" * 60, event=event, routing_key="r" * 90)
    node = "a-long-name.internal.example.org"
    Pulse.objects.create(name=f"worker:celery@{node}", at=clock.now(), queues=[])
    Pulse.objects.create(name="tick", at=clock.now(), by=f"celery@{node} ({node}:12345)")
    page = visit(operator, "/", width=width, scheme=scheme)
    assert_fits(page)
    for address in (
        f"/admin/tailrace_events/event/{event.pk}/change/",
        "/admin/tailrace_jobs/job/",
        f"/admin/tailrace_jobs/job/{job.pk}/change/",
        "/admin/tailrace_jobs/queue/",
    ):
        page.goto(address)
        assert_fits(page, address)
    page.goto("/overview/storage")
    look_at(page, "storage")


def test_a_job_is_replayed_with_its_button(operator: User, visit: Callable[..., Page]) -> None:
    job = operators.job()
    page = visit(operator, f"/admin/tailrace_jobs/job/{job.pk}/change/")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("body")).to_contain_text("1 job replayed.")
    job.refresh_from_db()
    assert job.state == "pending"


def test_all_failed_jobs_of_a_filter_are_replayed_from_the_list(
    operator: User, visit: Callable[..., Page]
) -> None:
    for _ in range(60):
        operators.job()
    page = visit(operator, "/admin/tailrace_jobs/job/?state=failed")
    page.locator("#action-toggle").check()
    page.get_by_text("Select all matching jobs").click()
    page.locator("select[name=action]").select_option("replay_jobs")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="60 jobs").click()
    expect(page.locator("body")).to_contain_text("60 jobs replayed.")


def test_j_and_k_move_along_the_rows_of_a_list(operator: User, visit: Callable[..., Page]) -> None:
    oldest, _, newest = (operators.job() for _ in range(3))
    page = visit(operator, "/admin/tailrace_jobs/job/?state=failed")

    def focused() -> str:
        return str(page.evaluate("document.activeElement.textContent.trim()"))

    page.keyboard.press("j")
    assert focused() == str(newest.pk)
    for _ in range(5):
        page.keyboard.press("j")
    assert focused() == str(oldest.pk)
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert focused() == str(newest.pk)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/job/{newest.pk}/change/**")


def test_thirty_alike_are_replayed_with_two_clicks(
    operator: User, visit: Callable[..., Page]
) -> None:
    rights = Permission.objects.filter(codename="view_failuregroup")
    operator.user_permissions.add(*rights)
    kind = FailureGroup.objects.create(id=7, handler=operators.Trim.name, error_class="oil.Out")
    jobs = [operators.job(failure_group_id=kind.pk) for _ in range(30)]
    page = visit(operator, "/")
    page.locator("#replay-7").click()
    page.get_by_role("button", name="30 jobs").click()
    expect(page.locator("body")).to_contain_text("30 jobs replayed.")
    assert Job.objects.filter(pk__in=[job.pk for job in jobs], state="pending").count() == 30


def test_all_flagged_events_are_acknowledged_with_two_clicks(
    operator: User, visit: Callable[..., Page]
) -> None:
    for n in range(7):
        Event.objects.create(source="t", source_id=str(n), type="x", problem="odd")
    page = visit(operator, "/")
    page.locator("#confirm-acknowledge-all summary").click()
    page.get_by_role("button", name="Acknowledge all 7", exact=True).click()
    expect(page.locator("body")).to_contain_text("7 events acknowledged.")
    assert Event.objects.flagged().count() == 0


def test_the_chosen_window_stays_while_the_page_updates_itself(
    operator: User, visit: Callable[..., Page]
) -> None:
    page = visit(operator, "/")
    page.locator("#window-7d").click()
    heading = page.locator("#title-numbers")
    expect(heading).to_have_text("The last 7 days")
    page.locator("#figure-failed").focus()
    operators.job(error="the oil is out")
    expect(page.locator("#figure-failed >> xpath=../.. >> .tr-value")).to_have_text("1")
    expect(heading).to_have_text("The last 7 days")
    expect(page.locator("#figure-failed")).to_be_focused()


def test_a_queue_is_paused_and_resumed_with_its_buttons(
    operator: User, visit: Callable[..., Page]
) -> None:
    page = visit(operator, "/admin/tailrace_jobs/queue/")
    page.get_by_role("link", name=operators.Trim.name, exact=True).click()
    page.get_by_label("Reason").fill("the oil is changed")
    page.get_by_label("Until").select_option("in 4 hours")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("body")).to_contain_text(f"{operators.Trim.name}: paused.")
    expect(page.locator("body")).to_contain_text("the oil is changed")
    expect(page.locator("body")).to_contain_text("(in 4 h)")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("body")).to_contain_text(f"{operators.Trim.name}: resumed.")
