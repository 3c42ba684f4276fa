"""Threads that jobs depend on go on after an unexpected error, and the verdict names it."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from tailrace.db import connections
from tailrace.jobs.engine.coalesce import Coalescer
from tailrace.jobs.engine.maintenance import upkeep
from tailrace.jobs.engine.maintenance.upkeep import Duty, Upkeep, UpkeepThread
from tailrace.jobs.engine.maintenance.workers import turns
from tailrace.jobs.models import Pulse
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.runtime import report, thread_failures
from tests.kit import PATIENCE, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_failures, "_next_at", {})
    monkeypatch.setattr(thread_failures, "LONGEST_PAUSE", 0.01)


@pytest.fixture
def threads() -> Iterator[list[Any]]:
    """Upkeep and its threads, which end with the test."""
    started: list[Any] = []
    yield started
    for each in started:
        each.stop()
    for each in started:
        for thread in getattr(each, "_threads", [each]):
            thread.join(PATIENCE)


def failed(thread: str) -> Pulse | None:
    """Return the record of the last failure of this thread."""
    return Pulse.objects.filter(name__startswith="thread:", facts__thread=thread).first()


def words() -> list[str]:
    return [cause.words for cause in verdict.work_out().causes if cause.code == "thread_failed"]


def test_a_missing_setting_stops_one_duty_and_is_named(settings: Any, threads: list[Any]) -> None:
    """Without JOBS_SWEEP_SECONDS nothing sweeps. The tick, which rescues jobs, runs."""
    del settings.JOBS_SWEEP_SECONDS
    threads.append(own := Upkeep())
    own.start("w@test")
    wait_until(lambda: Pulse.objects.filter(pk="tick").exclude(by="").exists(), what="a tick")
    wait_until(lambda: Pulse.objects.filter(pk="history").exclude(by="").exists(), what="the rest")
    wait_until(lambda: failed("sweep: sweep"), what="the record")
    [text] = words()
    assert text.startswith(f"The thread sweep: sweep of the process {thread_failures.process()} ")
    assert "with builtins.AttributeError" in text
    [cause] = [each for each in verdict.work_out().causes if each.code == "thread_failed"]
    assert "JOBS_SWEEP_SECONDS" in cause.quoted


def test_a_duty_that_fails_delays_no_other_and_is_forgotten_when_it_succeeds(
    threads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(turns, "OVERDUE", 0)
    broken, worked = threading.Event(), threading.Event()
    broken.set()

    def work() -> None:
        if broken.is_set():
            raise LookupError("no such lamp")

    duties = [Duty("broken", 0.1, work), Duty("other", 0.1, worked.set)]
    thread = UpkeepThread("test", "me", duties, statement_seconds=5, lock_seconds=1)
    threads.append(thread)
    thread.start()
    assert worked.wait(PATIENCE)
    wait_until(lambda: failed("test: broken"), what="the record")
    assert len(words()) == 1
    broken.clear()
    wait_until(lambda: not failed("test: broken"), what="the end of the record")
    assert words() == []


def test_what_always_fails_delays_no_duty(threads: list[Any]) -> None:
    """The heartbeat and the tick have one thread."""
    worked = threading.Event()

    def always() -> float:
        raise LookupError("no heart")

    duties = [Duty("other", 0.1, worked.set)]
    thread = UpkeepThread("test", "me", duties, statement_seconds=5, lock_seconds=1, always=always)
    threads.append(thread)
    thread.start()
    assert worked.wait(PATIENCE)
    wait_until(lambda: failed("test: each round"))


def test_a_step_of_the_tick_that_fails_is_named(
    threads: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise LookupError("no schedule")

    monkeypatch.setattr("tailrace.jobs.engine.maintenance.ticking.schedules.work_off", fail)
    threads.append(own := Upkeep())
    own.start("w@test")
    wait_until(lambda: failed("tick: tick"))


def test_wake_ups_go_on_after_an_error_between_two_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the thread ended, `request` would not start another one: it counts as running."""
    calls: list[set[str]] = []
    waker: Coalescer[str] = Coalescer("test-waker", lambda names: calls.append(set(names)), pace=0)
    with monkeypatch.context() as broken:

        def fail() -> Any:
            raise LookupError("no connection")

        broken.setattr("tailrace.jobs.engine.coalesce.connections.current", fail)
        waker.request({"a"})
        wait_until(lambda: calls)
    waker.request({"b"})
    wait_until(lambda: {"b"} in calls, what="the next call")
    assert waker.flush(seconds=PATIENCE)


def test_an_error_of_a_wake_up_is_recorded() -> None:
    def fail(names: Any) -> None:
        raise LookupError("no broker")

    waker: Coalescer[str] = Coalescer("test-waker", fail, pace=0)
    waker.request({"a"})
    assert waker.flush(seconds=PATIENCE)
    wait_until(lambda: failed("test-waker"))


reported: list[int] = []


def exit_once(failure: report.Failure) -> None:
    """A reporter of a project."""
    reported.append(failure.job_id)
    if len(reported) == 1:
        raise SystemExit


@pytest.fixture
def exiting_reporter(settings: Any) -> Iterator[None]:
    settings.JOBS_ERROR_REPORTERS = [f"{__name__}.exit_once"]
    report.reporters.cache_clear()
    yield
    reported.clear()
    report.reporters.cache_clear()


@pytest.mark.usefixtures("exiting_reporter")
def test_reports_go_on_after_a_reporter_that_exits() -> None:
    def report_one(id: int) -> None:
        failure = report.Failure("test.work", id, None, "", "", 1, 4, 1, False, 60.0, "", "")
        report.report_later([failure])
        wait_until(lambda: reported[-1:] == [id])

    report_one(1)
    report_one(2)
    assert reported == [1, 2]


def test_a_failure_that_came_back_counts_and_fades(clock: Any) -> None:
    for _ in range(3):
        thread_failures.record("lamp", LookupError("no oil"))
        thread_failures._next_at.clear()
    [text] = words()
    assert " failed 3 times since " in text
    clock.step(thread_failures.SHOWN_SECONDS + 1)
    assert words() == []
    thread_failures.record("lamp", LookupError("no oil"))
    assert " failed at " in words()[0]


def test_a_database_that_is_away_is_no_reason_to_fail() -> None:
    connections.current().close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", "1")
        thread_failures.record("lamp", LookupError("no oil"))
    connections.current().close()
    assert failed("lamp") is None
