"""Somebody who sees the overview for the first time finds what is wrong, and what to press.

Each test plants one trouble, begins at the overview, and follows only what the verdict offers: two
clicks at most.
"""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.db import clock
from tailrace.jobs.destinations import breaker
from tailrace.jobs.models import Attempt, Breaker, Job, Pulse, Queue, Schedule
from tailrace.jobs.operations.pause import pause
from tests.jobs import operators

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
RIGHTS = (
    "view_job", "view_job_payload", "replay_job", "view_queue", "pause_queue", "view_breaker",
    "close_breaker", "view_schedule", "change_schedule",
)  # fmt: skip
TRIM = operators.Trim.name


MOST_CLICKS = 2
# In each page that the tab opens: the session keeps their sum.
COUNT_CLICKS = """
addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks || 0) + 1;
}, true);
"""


@pytest.fixture
def overview(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> Iterator[Callable[[], Page]]:
    """Return a function that opens the overview of a system in which nothing else is wrong; in the
    end, one or two clicks were enough."""
    operators.register_handlers()
    Pulse.objects.create(name="tick", at=clock.now(), by="w@test")
    operators.worker("w@test", children=(101, 102))
    operator, pages = staff("newcomer", *(f"any.{right}" for right in RIGHTS)), list[Page]()

    def open_overview() -> Page:
        page = visit(operator, "/")
        page.add_init_script(COUNT_CLICKS)
        page.evaluate(COUNT_CLICKS)
        pages.append(page)
        return page

    yield open_overview
    (page,) = pages
    assert 1 <= int(page.evaluate("sessionStorage.clicks")) <= MOST_CLICKS


def headline(page: Page) -> str:
    """Return the line that the overview begins with."""
    return page.locator("#title-verdict").inner_text()


def follow(page: Page, offer: str) -> None:
    """Press the first button or link of the verdict, which has to be called this."""
    first = page.locator("#verdict button, #verdict .tr-mend a").first
    expect(first).to_contain_text(offer)
    first.click()


def test_the_pool_is_full(overview: Callable[[], Page]) -> None:
    long = [operators.runs(child, 90) for child in (101, 102)]
    operators.due()
    page = overview()
    assert headline(page).startswith("All 2 worker processes have been busy since ")
    assert f"2 × {TRIM} (job {long[0].pk} for 2 min)" in headline(page)
    follow(page, "Running jobs of the workers")
    page.get_by_role("link", name=f"{TRIM} {long[0].pk}").click()
    page.wait_for_url(f"**/job/{long[0].pk}/**")
    expect(page.locator("summary", has_text="Cancel…")).to_be_visible()


def test_a_queue_is_paused(overview: Callable[[], Page]) -> None:
    pause(TRIM, "bob")
    operators.due(2)
    page = overview()
    assert headline(page).startswith(f"{TRIM} was paused by bob at ")
    follow(page, "Resume")
    expect(page.locator("body")).to_contain_text(f"{TRIM}: resumed.")
    assert not Queue.objects.get(pk=TRIM).paused
    assert headline(page) == "Healthy"


def test_a_job_is_poison(overview: Callable[[], Page]) -> None:
    job = operators.job(error="OilError: there is no oil", finished_at=clock.now(), attempt=3)
    Attempt.objects.create(job=job, claim_no=3, outcome="failed", error_class="OilError")
    page = overview()
    assert headline(page).startswith(f"1 job of {TRIM} failed permanently in the last hour.")
    assert "after 3 attempts with OilError" in headline(page)
    follow(page, f"Job {job.pk}")
    expect(page.locator("body")).to_contain_text("there is no oil")
    page.get_by_role("button", name="Replay").first.click()
    expect(page.locator("body")).to_contain_text("1 job replayed.")
    assert Job.objects.get(pk=job.pk).state == "pending"


def test_an_endpoint_is_dead(overview: Callable[[], Page]) -> None:
    name = f"{TRIM}:https://dead.example.org"
    breaker.record_failure(name, "connection refused", at_once=True)
    page = overview()
    assert headline(page).startswith(f"A destination of {TRIM} cannot be reached: 1 failure")
    expect(page.locator("#verdict")).to_contain_text(f"{name}: connection refused")
    follow(page, "Try it now")
    expect(page.locator("body")).to_contain_text("the circuit breaker is closed")
    assert Breaker.objects.get().open_until is None


def test_a_schedule_was_removed(overview: Callable[[], Page]) -> None:
    Schedule.objects.create(
        name="lamp", handler=TRIM, owner="code", every_seconds=60, enabled=False,
        retired_at=clock.now(),
    )  # fmt: skip
    page = overview()
    assert headline(page).startswith("The schedule lamp has not run since ")
    follow(page, "Schedule it again")
    expect(page.locator("body")).to_contain_text("lamp: scheduled again.")
    assert Schedule.objects.get().enabled
