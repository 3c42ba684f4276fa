"""What others have locked: claims pass over it, and no queue waits for another queue's row."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import Error, connections
from structlog.testing import capture_logs

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim, limits
from tailrace.jobs.engine.drain import begin, drain
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Job, Queue, QueueActivity
from tests.kit import (
    PATIENCE,
    at_once,
    broker_length,
    claimed,
    empty_broker,
    held,
    wait_until,
    worker,
)
from tests.sandbox.handlers import Fair, Ordered, Other, Working

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    empty_broker()
    wake._unmarked_at.clear()


def an_operator_changes(name: str) -> Any:
    change = (
        "WITH limits AS"
        " (UPDATE tailrace_jobs_queue SET max_running = 7 WHERE name = %s RETURNING name)"
    )
    # As another engine's statement that hangs.
    lock = (
        "UPDATE tailrace_jobs_queueactivity a SET resends = 0 FROM limits"
        " WHERE a.name = limits.name"
    )
    return held(f"{change} {lock}", name)


def beside(work: Callable[[], Any]) -> Any:
    """Return what `work` returns; fail if it waits for what is locked meanwhile."""
    return at_once(1, lambda _: work())[0]


def states(name: str) -> set[str]:
    return set(Job.objects.filter(handler=name).values_list("state", flat=True))


# --- jobs -----------------------------------------------------------------------------------------


@contextmanager
def open_claim(name: str) -> Iterator[list[Any]]:
    """A claim of another worker that is not committed yet; it is rolled back at the end."""
    jobs: list[Any] = []
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        handler = registry.get(name)
        with limits.claim_lock(handler, limits.Limits()):
            jobs.extend(claim.claim(handler, limits.Limits(), handler.batch_size))
            ready.set()
            done.wait(PATIENCE)
            raise psycopg.Error

    def in_thread() -> None:
        try:
            work()
        except psycopg.Error:
            pass
        finally:
            connections.close_all()

    thread = threading.Thread(target=in_thread, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    claim._last_lanes.clear()  # the next claim is another process's
    try:
        yield jobs
    finally:
        done.set()
        thread.join(PATIENCE)


def test_a_fair_claim_goes_on_to_lanes_that_are_free() -> None:
    enqueue_many(Fair, [{"lane": f"lane{n:03}"} for n in range(100)])
    with open_claim("test.fair") as theirs:
        jobs = beside(lambda: claimed("test.fair"))
        assert [job.lane for job in jobs] == [f"lane{n:03}" for n in range(10, 20)]
        assert beside(lambda: drain("test.fair")) == 80
    assert len(theirs) == 10
    assert drain("test.fair") == 10


def test_a_fair_share_counts_the_lanes_that_are_free() -> None:
    enqueue_many(Fair, [{"lane": f"lane{n}"} for n in range(10)])
    with open_claim("test.fair"):
        enqueue_many(Fair, [{"lane": "new"}] * 20)
        jobs = beside(lambda: claimed("test.fair"))
        assert [job.lane for job in jobs] == ["new"] * 10


@pytest.mark.parametrize("lock", ["FOR SHARE", "FOR UPDATE"])
def test_a_plain_claim_passes_over_a_locked_job(lock: str) -> None:
    first, *others = [enqueue(Working) for _ in range(3)]
    with held(f"SELECT 1 FROM tailrace_jobs_job WHERE id = %s {lock}", first):
        assert [job.id for job in beside(lambda: claimed("test.work"))] == others
    assert [job.id for job in claimed("test.work")] == [first]


@pytest.mark.parametrize("lock", ["FOR SHARE", "FOR UPDATE"])
def test_a_locked_head_holds_its_ordered_lane_alone(lock: str) -> None:
    head, behind, other, last = [enqueue(Ordered, lane=lane) for lane in "aabc"]
    with held(f"SELECT 1 FROM tailrace_jobs_job WHERE id = %s {lock}", head):
        assert [job.id for job in beside(lambda: claimed("test.ordered"))] == [other, last]
        assert beside(lambda: claimed("test.ordered")) == []
    assert [job.id for job in claimed("test.ordered")] == [head]
    assert Job.objects.get(pk=behind).state == "pending"


# --- the lock of a queue's claims -----------------------------------------------------------------


def test_a_drain_ends_behind_a_claim_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_SECONDS", 1)
    enqueue(Ordered)
    with open_claim("test.ordered") as theirs:
        assert len(theirs) == 1
        with capture_logs() as logs:
            assert beside(lambda: drain("test.ordered")) == 0
        assert [line["queue"] for line in logs if line["event"] == "claim.locked"] == [
            "test.ordered"
        ]
    assert drain("test.ordered") == 1


def test_a_process_stopped_in_a_claim_loses_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STOPPED_SECONDS", 1)
    enqueue(Ordered)
    ready, done = threading.Event(), threading.Event()

    def stop_in_a_claim() -> None:
        try:
            with limits.claim_lock(registry.get("test.ordered"), limits.Limits()):
                ready.set()
                done.wait(PATIENCE)
                Job.objects.exists()
        except Error:
            pass
        finally:
            connections.close_all()

    thread = threading.Thread(target=stop_in_a_claim, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    monkeypatch.undo()
    wait_until(lambda: beside(lambda: drain("test.ordered")) == 1)
    assert thread.is_alive()
    done.set()
    thread.join(PATIENCE)


# --- queue rows -----------------------------------------------------------------------------------


def test_a_locked_queue_row_stops_no_job() -> None:
    def publish_and_drain(handler: type[Working]) -> int:
        enqueue(handler)
        assert broker_length(handler.name) == 1
        return drain(handler.name)

    with an_operator_changes("test.work"):
        assert beside(lambda: publish_and_drain(Working)) == 1
        assert beside(lambda: publish_and_drain(Other)) == 1
        assert states("test.work") == states("test.other") == {"completed"}
    assert QueueActivity.objects.get(name="test.work").drained_at is None


def test_a_waker_sends_a_locked_queue_few_messages() -> None:
    with an_operator_changes("test.work"):
        woken = beside(lambda: [wake.wake(["test.work", "test.other"]) for _ in range(3)])
    assert [sorted(names) for names in woken[:1]] == [["test.other", "test.work"]]
    assert broker_length("test.other") == 1
    assert broker_length("test.work") == sum(names.count("test.work") for names in woken)


def test_a_tick_wakes_a_locked_queue_whose_flag_is_stale(clock) -> None:
    enqueue(Working)
    enqueue(Other)
    empty_broker()
    clock.step(100)
    with an_operator_changes("test.work"):
        assert set(beside(tick.wake_due)) == {"test.work", "test.other"}
        assert broker_length("test.work") == broker_length("test.other") == 1
    assert "test.work" in tick.wake_due()


def test_the_limits_of_a_locked_queue_hold() -> None:
    Queue.objects.filter(pk="test.work").update(max_running=2)
    enqueue_many(Working, [{}] * 5)
    with an_operator_changes("test.work"):
        assert len(beside(lambda: claimed("test.work"))) == 2
        assert beside(lambda: claimed("test.work")) == []


def test_a_locked_queue_that_is_paused_stays_paused() -> None:
    Queue.objects.filter(pk="test.work").update(paused_at="2026-01-01T00:00Z")
    with an_operator_changes("test.work"):
        assert beside(lambda: begin(registry.get("test.work"))) is None


def test_a_rate_limited_queue_waits_while_its_row_is_locked(clock) -> None:
    Queue.objects.filter(pk="test.work").update(rate_limit=2)
    clock.step(5)
    enqueue_many(Working, [{}] * 5)
    with an_operator_changes("test.work"):
        assert beside(lambda: claimed("test.work")) == []
        enqueue(Other)
        assert beside(lambda: drain("test.other")) == 1
    assert len(claimed("test.work")) == 2


@pytest.mark.slow
def test_workers_do_all_jobs_while_a_queue_row_is_locked(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    def done() -> bool:
        return states("test.work") == states("test.other") == {"completed"}

    queues = ["test.work", "test.other"]
    with (
        an_operator_changes("test.work"),
        worker(process_env, queues, log=tmp_path / "worker.log", concurrency=4),
    ):
        for handler in (Working, Other):
            beside(lambda handler=handler: enqueue_many(handler, [{}] * 50))
        wait_until(done, 60)
    assert Job.objects.filter(handler__in=queues).count() == 100
