"""How calls end that do not end by themselves: time limits, blocked loops, the end of a process."""

import asyncio
import queue
import threading
import time
from contextlib import suppress

import pytest
import structlog
from django.db import connection

from tailrace.db import connections
from tailrace.db.connections import engine as engine_connection
from tailrace.jobs.engine import in_flight
from tailrace.jobs.engine.in_flight import engine, isolation, watchdog
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.in_flight.loop import Loop
from tailrace.jobs.engine.in_flight.settlement import Settlement
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime import shutdown
from tailrace.jobs.runtime.states import State
from tests.jobs.engine.in_flight.conftest import all_in
from tests.kit import PATIENCE, claimed, held, repeated, wait_until
from tests.sandbox.handlers import Waiting, WaitingShortly

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = f"took longer than its time limit of {WaitingShortly.time_limit} s"


@pytest.fixture
def logs():
    with structlog.testing.capture_logs() as entries:
        yield lambda name: [entry for entry in list(entries) if entry["event"] == name]


def test_a_time_limit_cancels_the_call(ring, scripted) -> None:
    cleaned = []

    async def hang(job):
        try:
            await asyncio.sleep(60)
        except Exception:
            pytest.fail("an `except Exception` must not swallow the limit")
        finally:
            cleaned.append(job.id)

    scripted(WaitingShortly.name, hang)
    ids = [enqueue(WaitingShortly) for _ in range(5)]
    ring(WaitingShortly.name)
    wait_until(lambda: Attempt.objects.count() == 5)
    assert set(Job.objects.values_list("state", "attempt", "error")) == {("pending", 1, LIMIT)}
    assert sorted(cleaned) == ids


def test_a_call_that_swallows_its_cancellation_loses_its_place(
    ring, scripted, monkeypatch, logs
) -> None:
    monkeypatch.setattr(engine, "ABANDON_SECONDS", 0.3)
    monkeypatch.setattr(WaitingShortly, "concurrency", 2)
    over = threading.Event()
    ended = []

    async def swallow(job):
        if job.payload.note != "bad":
            return
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        ended.append(job.id)

    scripted(WaitingShortly.name, swallow)
    enqueue_many(WaitingShortly, [{"payload": {"note": "bad"}}] * 2)
    enqueue_many(WaitingShortly, [{}] * 4)
    ring(WaitingShortly.name)
    wait_until(lambda: Job.objects.filter(state="completed").count() == 4)
    assert list(Attempt.objects.values_list("message", flat=True)) == [LIMIT] * 2
    assert {entry["queue"] for entry in logs("in_flight.not_cancelled")} == {WaitingShortly.name}
    over.set()
    wait_until(lambda: len(ended) == 2)
    enqueue(WaitingShortly)
    ring(WaitingShortly.name)
    wait_until(lambda: Job.objects.filter(state="completed").count() == 5)
    assert Job.objects.pending().count() == 2, "their late end changes nothing"


def test_jobs_are_settled_soon_whatever_others_do(ring, scripted) -> None:
    """One hangs, one after the other ends: each is settled soon after its end."""
    release = asyncio.Event()
    ended = {}

    async def wait(job):
        if job.payload.note == "hang":
            await release.wait()
        else:
            await asyncio.sleep(job.payload.seconds)
        ended[job.id] = time.monotonic()

    scripted(Waiting.name, wait)
    enqueue(Waiting, {"note": "hang"})
    enqueue_many(Waiting, [{"payload": {"seconds": n / 50}} for n in range(30)])
    ring(Waiting.name)
    settled: dict[int, float] = {}

    def look() -> bool:
        for id in Job.objects.filter(state="completed").values_list("id", flat=True):
            settled.setdefault(id, time.monotonic())
        return len(settled) == 30

    wait_until(look)
    lags = sorted(settled[id] - ended[id] for id in settled)
    assert lags[len(lags) // 4] < 0.25  # the test's own look may be late on a busy machine
    assert lags[len(lags) // 2] < 2
    assert Job.objects.running().count() == 1
    release._loop.call_soon_threadsafe(release.set)
    wait_until(all_in("completed"))


def test_a_blocked_loop_is_noticed_and_its_handler_named(ring, scripted, logs, monkeypatch) -> None:
    async def block(job):
        await asyncio.sleep(0.01)
        until = time.monotonic() + PATIENCE
        while job.payload.note == "bad" and not of(bad) and time.monotonic() < until:
            time.sleep(0.01)

    def of(id: int) -> list:
        return [entry for entry in logs("in_flight.loop_blocked") if entry["job_id"] == id]

    monkeypatch.setattr(watchdog, "REPEAT_SECONDS", 0)  # a busy machine may hold others up
    scripted(Waiting.name, block)
    bad = enqueue(Waiting, {"note": "bad"})
    enqueue_many(Waiting, [{}] * 20)
    ring(Waiting.name)
    wait_until(all_in("completed"))
    (warning,) = of(bad)
    assert warning["queue"] == Waiting.name
    assert warning["seconds"] > 0.1
    assert "test_ends.py" in warning["at"]
    assert "block" in warning["at"]


def test_a_loop_that_is_not_blocked_is_not_reported(ring, scripted, logs, monkeypatch) -> None:
    """A busy machine may stop the loop's thread for a moment, but not each time."""
    monkeypatch.setattr(watchdog, "REPEAT_SECONDS", 0)

    async def work(job):
        for _ in range(20):
            await asyncio.sleep(0.005)

    scripted(Waiting.name, work)
    for _ in range(10):
        before = len(logs("in_flight.loop_blocked"))
        enqueue_many(Waiting, [{}] * 50)
        ring(Waiting.name)
        wait_until(all_in("completed"))
        if len(logs("in_flight.loop_blocked")) == before:
            return
    pytest.fail("each time there was a report")


def test_a_loop_that_stays_blocked_is_replaced(ring, scripted, monkeypatch, logs) -> None:
    monkeypatch.setattr(engine, "ABANDON_SECONDS", 0.3)
    monkeypatch.setattr(engine, "HELD_SECONDS", 0.2)
    over = []

    async def block(job):
        await asyncio.sleep(0.1)
        while job.payload.note == "bad" and not over:
            time.sleep(0.01)

    scripted(WaitingShortly.name, block)
    bad = enqueue(WaitingShortly, {"note": "bad"})
    enqueue_many(WaitingShortly, [{}] * 10)
    ring(WaitingShortly.name)
    wait_until(lambda: ring(WaitingShortly.name) or Attempt.objects.exists())
    wait_until(
        lambda: ring(WaitingShortly.name) or Job.objects.filter(state="completed").count() == 10
    )
    over.append(True)
    assert Attempt.objects.get().job_id == bad
    assert set(Job.objects.exclude(pk=bad).values_list("attempt", flat=True)) == {1}
    assert logs("in_flight.loop_replaced")[0]["job_id"] == bad


def test_leases_are_renewed_while_calls_are_in_flight(ring, scripted, monkeypatch) -> None:
    monkeypatch.setattr(Waiting, "claim_timeout", 6)
    over = []

    async def wait(job):
        while not over:
            await asyncio.sleep(0.01)

    scripted(Waiting.name, wait)
    enqueue_many(Waiting, [{}] * 5)
    ring(Waiting.name)
    wait_until(lambda: Job.objects.running().count() == 5)
    first = Job.objects.earliest("id").lease_until
    with repeated(rescue.rescue, 0.05):
        wait_until(lambda: (Job.objects.earliest("id").lease_until - first).total_seconds() > 1)
    over.append(True)
    wait_until(all_in("completed"))
    assert not Attempt.objects.exists()


def test_who_lost_its_lease_settles_nothing(ring, scripted, clock) -> None:
    over = []

    async def wait(job):
        while not over:
            await asyncio.sleep(0.01)
        return "late"

    scripted(Waiting.name, wait)
    id = enqueue(Waiting)
    ring(Waiting.name)
    wait_until(lambda: Job.objects.running().exists())
    Job.objects.update(claim_no=7)
    over.append(True)
    wait_until(lambda: not in_flight._in_flight._claims.in_flight())
    job = Job.objects.get(pk=id)
    assert (job.state, job.claim_no, job.result) == ("running", 7, None)


def test_a_row_that_is_locked_is_settled_later(ring, scripted) -> None:
    ids = [enqueue(Waiting) for _ in range(5)]
    go = []

    async def wait(job):
        while not go:
            await asyncio.sleep(0.01)

    scripted(Waiting.name, wait)
    ring(Waiting.name)
    wait_until(lambda: Job.objects.running().count() == 5)
    with held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", ids[0]):
        go.append(True)
        wait_until(lambda: Job.objects.filter(state="completed").count() == 4)
    wait_until(all_in("completed"))
    assert set(Job.objects.values_list("claim_no", flat=True)) == {1}


def test_a_verdict_that_cannot_be_stored_harms_its_job_only() -> None:
    settlement = Settlement()
    enqueue_many(Waiting, [{}] * 5)
    bad, *others = [Call(job) for job in claimed(Waiting.name)]
    bad.end(Verdict(bad.job, State.COMPLETED, error="\0"))
    for call in others:
        call.end(Verdict(call.job, State.COMPLETED))
    for call in (bad, *others):
        settlement.add(call)
    with engine_connection():
        wait_until(lambda: settlement.settle(time.monotonic()) and not len(settlement))
        connections.current().close()
    assert Job.objects.get(pk=bad.job.id).state == "failed"
    assert Job.objects.filter(state="completed").count() == 4


def test_a_shutdown_lets_calls_end_within_the_timeout(ring, scripted) -> None:
    begun = []

    async def wait(job):
        begun.append(job.id)
        while in_flight._in_flight is not None:  # until the shutdown begins
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)

    scripted(Waiting.name, wait)
    enqueue_many(Waiting, [{}] * 150)
    ring(Waiting.name)
    wait_until(lambda: len(begun) == 100)
    in_flight.shut_down(30)
    assert Job.objects.filter(state="completed").count() == 100
    assert Job.objects.pending().filter(claim_no=0).count() == 50


def test_a_call_that_waits_for_a_place_does_not_begin_in_a_shutdown(monkeypatch, scripted) -> None:
    monkeypatch.setattr(Waiting, "concurrency", 1)
    place = threading.Event()

    async def wait(job):
        while not place.is_set():
            await asyncio.sleep(0.01)

    scripted(Waiting.name, wait)
    enqueue_many(Waiting, [{}] * 2)
    first, second = (Call(job) for job in claimed(Waiting.name, limit=2))
    ended: queue.SimpleQueue[Call] = queue.SimpleQueue()
    loop = Loop(ended.put)
    try:
        loop.begin([first, second])
        wait_until(lambda: first.began_at is not None)
        shutdown.begin()
        place.set()
        assert ended.get(timeout=PATIENCE) is first
        assert second.began_at is None
    finally:
        shutdown._shared[:8] = bytes(8)
        loop.stop()


def test_after_the_timeout_calls_are_interrupted_and_handed_back(ring, scripted) -> None:
    begun, cleaned = [], []

    async def wait(job):
        begun.append(job.id)
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(job.id)

    scripted(Waiting.name, wait)
    enqueue_many(Waiting, [{}] * 50)
    ring(Waiting.name)
    wait_until(lambda: len(begun) == 50)
    began = time.monotonic()
    in_flight.shut_down(0.2)
    assert time.monotonic() - began < 50
    assert len(cleaned) == 50
    assert set(Job.objects.values_list("state", "attempt", "claim_no")) == {("pending", 0, 1)}
    due = "SELECT count(*) FROM tailrace_jobs_job WHERE due_at <= now()"
    with connection.cursor() as cursor:
        cursor.execute(due)
        assert cursor.fetchone() == (50,)


def test_a_shutdown_waits_for_no_call_that_cannot_end(ring, scripted) -> None:
    over = []

    async def block(job):
        while not over:
            time.sleep(0.01)

    async def swallow(job):
        while not over:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    scripted(Waiting.name, swallow)
    scripted(WaitingShortly.name, block)
    enqueue_many(Waiting, [{}] * 3)
    ring(Waiting.name)
    wait_until(lambda: Job.objects.running().count() == 3)
    enqueue_many(WaitingShortly, [{}] * 3)
    ring(WaitingShortly.name)
    wait_until(lambda: Job.objects.running().count() == 6)
    began = time.monotonic()
    in_flight.shut_down(0)
    assert time.monotonic() - began < 50
    over.append(True)
    assert set(Job.objects.values_list("state", "attempt")) == {("pending", 0)}


def test_a_suspect_waits_for_slow_calls_for_a_moment_only(ring, scripted, monkeypatch) -> None:
    monkeypatch.setattr(isolation, "ALONE_SECONDS", 0.1)
    over, began = [], []

    async def wait(job):
        began.append(job.id)
        while not over:
            await asyncio.sleep(0.01)

    scripted(Waiting.name, wait)
    enqueue_many(Waiting, [{}] * 20)
    Job.objects.update(isolate=True)
    ring(Waiting.name)
    wait_until(lambda: len(began) == 20)
    over.append(True)
    wait_until(all_in("completed"))
