"""Somebody who sees the overview for the first time finds what is wrong, and what to press.

Each test plants one trouble, begins at the overview, and follows only what the verdict offers: two
clicks at most. Where a real worker or session is in trouble, the test reports the seconds until the
open overview names it, as the property `seconds_until_named`.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect
from psycopg import OperationalError

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.destinations import breaker
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import (
    Attempt,
    Breaker,
    FailureGroup,
    Job,
    Pulse,
    Queue,
    Schedule,
    Total,
)
from tailrace.jobs.operations.pause import pause
from tailrace.jobs.platform.inspection.storage import oldest_snapshot
from tailrace.jobs.platform.inspection.verdict.causes.engines import snapshot_held
from tests.browser.screens import SCHEMES, WIDTHS, look_on, show_on
from tests.jobs import operators
from tests.jobs.inspection.verdict.test_connections import limited, taken
from tests.kit import PATIENCE, empty_broker, held, wait_until, worker
from tests.sandbox.handlers import WaitingByKey, Working

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
RIGHTS = (
    "view_job", "view_job_payload", "replay_job", "view_queue", "pause_queue", "view_breaker",
    "close_breaker", "view_schedule", "change_schedule", "end_session", "change_failuregroup",
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
    # In the future, so that neither is late on a slow machine.
    Pulse.objects.create(name="tick", at=clock.now() + timedelta(minutes=9), by="w@test")
    operators.worker("w@test", children=(101, 102), seen=-540)
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


# --- troubles of real workers and sessions ---


@pytest.fixture
def named(
    overview: Callable[[], Page], record_property: Callable[[str, object], None]
) -> Callable[..., Page]:
    """Return `named(plant, words)`: open the overview of a healthy system, plant the trouble, and
    wait until the headline, which the page updates by itself, contains the words."""

    def wait(plant: Callable[[], Any], words: str) -> Page:
        page = overview()
        assert headline(page) == "Healthy"
        began = time.monotonic()
        plant()
        expect(page.locator("#title-verdict")).to_contain_text(words, timeout=1000 * PATIENCE)
        record_property("seconds_until_named", round(time.monotonic() - began, 1))
        return page

    return wait


def shown_everywhere(page: Page, name: str) -> None:
    """Look at the page in both colour schemes, on a small and on a large screen."""
    for scheme in reversed(SCHEMES):
        for width in reversed(WIDTHS):
            show_on(page, width, scheme)
            look_on(page, f"{name} {width} {scheme}")


def test_a_destination_hangs(
    named: Callable[..., Page], process_env: dict[str, str], tmp_path: Path
) -> None:
    def call(do: str, key: str, count: int) -> None:
        payload = {"do": do, "seconds": 3600}
        for _ in range(count):
            Job.objects.create(handler=WaitingByKey.name, routing_key=key, payload=payload)
        wake.wake([WaitingByKey.name])

    def are_counted() -> bool:
        return Total.objects.filter(metric=totals.RUN, name=WaitingByKey.name).exists()

    empty_broker()
    with worker(process_env, [WaitingByKey.name], log=tmp_path / "worker.log"):
        call("note", "https://quick.example.org", 3)
        wait_until(are_counted, what="calls that ended")
        page = named(
            lambda: call("sleep", "https://slow.example.org", 29),
            f"Calls of {WaitingByKey.name} to a destination hang: 3 calls have run for ",
        )
        expect(page.locator("#title-verdict")).to_contain_text("26 jobs wait for them")
        expect(page.locator("#verdict")).to_contain_text("The destination is https://slow.")
        shown_everywhere(page, "hanging destination")
        follow(page, f"Queue {WaitingByKey.name}")
        page.get_by_role("button", name="Pause").click()
        wait_until(lambda: Queue.objects.get(pk=WaitingByKey.name).paused)


def test_all_connections_are_taken(named: Callable[..., Page]) -> None:
    with ExitStack() as stack:

        def plant() -> None:
            stack.enter_context(taken(60))
            stack.enter_context(limited(60))

        page = named(plant, "of 60 possible connections to the database are taken")
        expect(page.locator("#verdict")).to_contain_text("60 × report of ")
        shown_everywhere(page, "taken connections")
        follow(page, "Connections")
        expect(page.locator("#connections")).to_contain_text("60 × report of ")


def test_a_worker_is_frozen(
    named: Callable[..., Page], process_env: dict[str, str], tmp_path: Path
) -> None:
    empty_broker()
    with worker(process_env, [Working.name], log=tmp_path / "worker.log") as frozen:
        enqueue(Working, {"do": "sleep", "seconds": 3600})
        wait_until(lambda: Job.objects.running().exists())
        page = named(
            lambda: frozen.signal(signal.SIGSTOP),
            f"The worker {frozen.node} (process {frozen.process.pid} on ",
        )
        held = f"It holds 1 job (1 × {Working.name}), which other workers can claim from "
        assert held in headline(page)
        expect(page.locator("#panel-workers-and-upkeep")).to_contain_text("silent")
        shown_everywhere(page, "frozen worker")
        follow(page, "Workers")
        expect(page.locator("main")).to_contain_text("silent")


def test_a_handler_kills_its_process(
    named: Callable[..., Page], process_env: dict[str, str], tmp_path: Path
) -> None:
    empty_broker()
    with worker(process_env, [Working.name], log=tmp_path / "worker.log"):
        page = named(
            lambda: [enqueue(Working, {"do": "kill"}) for _ in range(4)],
            f"{Working.name} loses its workers: ",
        )
        assert "was killed by signal 9 (SIGKILL) while it ran" in headline(page)
        shown_everywhere(page, "killed processes")
        follow(page, "Job ")
        expect(page.locator("body")).to_contain_text("was killed by signal 9")


@pytest.fixture
def harmful_at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that makes a snapshot harmful when it is taken. Not before the trouble is
    planted: until then, each other transaction of this moment would be named."""

    def change() -> None:
        monkeypatch.setattr(snapshot_held, "HELD_SECONDS", 0)
        monkeypatch.setattr(snapshot_held, "LEAST_TRANSACTIONS", 0)

    return change


HOLD = "UPDATE tailrace_jobs_queue SET paused_by = paused_by"


def test_a_session_holds_a_snapshot(
    named: Callable[..., Page], harmful_at_once: Callable[[], None]
) -> None:
    with suppress(OperationalError), ExitStack() as stack:

        def plant() -> None:
            harmful_at_once()
            stack.enter_context(held(HOLD))
            query("SELECT pg_current_xact_id()::text")

        page = named(plant, "A session has held a snapshot since ")
        expect(page.locator("#verdict")).to_contain_text(f"Its statement: {HOLD}")
        page.locator("summary", has_text="End this session…").click()
        expect(page.locator("#verdict")).to_contain_text("The transaction of the session is rolled")
        shown_everywhere(page, "held snapshot")
        page.get_by_role("button", name="End this session").click()
        expect(page.locator("body")).to_contain_text("was asked to end")
        wait_until(lambda: oldest_snapshot() is None)


def test_an_old_failure_comes_last(
    named: Callable[..., Page], harmful_at_once: Callable[[], None]
) -> None:
    group = FailureGroup.objects.create(id=7, handler=TRIM, error_class="OilError")

    def plant() -> None:
        ago = clock.now() - timedelta(minutes=30)
        operators.job(error="OilError", finished_at=ago, attempt=3, failure_group=group)
        harmful_at_once()
        stack.enter_context(held(HOLD))
        query("SELECT pg_current_xact_id()::text")

    with ExitStack() as stack:
        page = named(plant, "A session has held a snapshot since ")
        old = page.locator("#verdict li").last
        expect(old).to_contain_text(f"1 job of {TRIM} failed permanently in the last hour.")
        expect(old.get_by_role("link", name="Replay all of this kind…")).to_be_visible()
        shown_everywhere(page, "old failure")
        old.get_by_role("button", name="Silence for a day").click()
        expect(page.locator("body")).to_contain_text(": silenced until ")
        expect(page.locator("#verdict")).not_to_contain_text("failed permanently")
