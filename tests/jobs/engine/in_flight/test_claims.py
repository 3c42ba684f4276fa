"""What is claimed for async handlers: the same order, lanes and limits, as places become free."""

import asyncio
import time
from collections import Counter

import pytest

from tailrace.jobs.engine.waking import wake
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job, Queue, QueueActivity
from tailrace.jobs.operations.retry import retry_now
from tests.jobs.engine.in_flight.conftest import all_in
from tests.kit import change_queue, held, wait_until
from tests.sandbox.handlers import Waiting, WaitingByKey, WaitingFairly, WaitingInOrder

pytestmark = pytest.mark.django_db(transaction=True)


class Calls:
    """What runs, and what has run: each call lasts until `let_end` of its job."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.began: list[int] = []
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.hanging: set[str] = set()

    async def __call__(self, job) -> None:
        key = job.lane or job.routing_key
        self.began.append(job.id)
        for name in (key, "all"):
            self.running[name] += 1
            self.most[name] = max(self.most[name], self.running[name])
        try:
            while self.seconds is None or key in self.hanging:
                await asyncio.sleep(0.01)
            await asyncio.sleep(self.seconds)
        finally:
            for name in (key, "all"):
                self.running[name] -= 1


@pytest.fixture
def calls(scripted):
    calls = Calls()
    for handler in (Waiting, WaitingByKey, WaitingFairly, WaitingInOrder):
        scripted(handler.name, calls)
    return calls


def completed() -> int:
    return Job.objects.filter(state="completed").count()


def test_places_are_filled_by_priority_and_due_time(ring, calls, monkeypatch) -> None:
    monkeypatch.setattr(Waiting, "concurrency", 4)
    later = [enqueue(Waiting, priority=priority) for priority in (3, 2, 1, 0)]
    first = [enqueue(Waiting, priority=0) for _ in range(3)]
    ring(Waiting.name)
    wait_until(lambda: len(calls.began) == 4)
    assert calls.began == [later[3], *first]
    calls.seconds = 0
    wait_until(all_in("completed"))
    assert calls.began[4:] == [later[2], later[1], later[0]]
    assert calls.most["all"] == 4


def test_lanes_take_turns(ring, calls) -> None:
    enqueue_many(WaitingFairly, [{"lane": "a"}] * 100)
    enqueue_many(WaitingFairly, [{"lane": "b"}] * 2)
    ring(WaitingFairly.name)
    wait_until(lambda: calls.running["a"] == 3 and calls.running["b"] == 2)
    calls.seconds = 0
    wait_until(all_in("completed"))


def test_an_ordered_lane_has_one_call_at_a_time_in_order(ring, calls) -> None:
    calls.seconds = 0.005
    lanes = ("a", "b", "c")
    enqueue_many(WaitingInOrder, [{"lane": lane} for lane in lanes for _ in range(10)])
    ring(WaitingInOrder.name)
    wait_until(all_in("completed"))
    assert max(calls.most[lane] for lane in lanes) == 1
    for lane in lanes:
        mine = list(Job.objects.filter(lane=lane).order_by("id").values_list("id", flat=True))
        assert [id for id in calls.began if id in mine] == mine


def test_max_running_holds_and_its_places_are_filled_again(ring, calls) -> None:
    Queue.objects.filter(pk=Waiting.name).update(max_running=5)
    calls.seconds = 0.01
    enqueue_many(Waiting, [{}] * 50)
    ring(Waiting.name)
    wait_until(all_in("completed"))
    assert calls.most["all"] <= 5


def test_a_rate_limit_holds(ring, calls) -> None:
    change_queue(Waiting.name, rate_limit=20, tokens=20)
    calls.seconds = 0
    enqueue_many(Waiting, [{}] * 100)
    began = time.monotonic()
    wait_until(lambda: ring(Waiting.name) or completed() >= 40)
    assert len(calls.began) <= 20 + 20 * (time.monotonic() - began) + 1


def test_a_paused_queue_claims_nothing_more(ring, calls, monkeypatch) -> None:
    monkeypatch.setattr(Waiting, "concurrency", 5)
    calls.seconds = 0.02
    enqueue_many(Waiting, [{}] * 2000)
    ring(Waiting.name)
    wait_until(lambda: completed() > 10)
    Queue.objects.filter(pk=Waiting.name).update(paused_at="2026-01-01T00:00Z")
    wait_until(lambda: not Job.objects.running().exists())
    assert Job.objects.pending().count() > 1000
    paused = len(calls.began)
    QueueActivity.objects.filter(name=Waiting.name).update(awake=True)
    ring(Waiting.name)
    wait_until(lambda: not QueueActivity.objects.get(name=Waiting.name).awake)
    assert len(calls.began) == paused
    Queue.objects.filter(pk=Waiting.name).update(paused_at=None)
    ring(Waiting.name)
    wait_until(lambda: len(calls.began) > paused)


def test_jobs_enqueued_while_others_run_begin_at_once(ring, calls) -> None:
    """The flag `awake` is cleared before the last claim, so each enqueueing sends a message."""
    for number in range(1, 20):
        enqueue(Waiting)
        wait_until(lambda: QueueActivity.objects.get(name=Waiting.name).awake)
        ring(Waiting.name)
        wait_until(lambda number=number: len(calls.began) == number)
        assert not QueueActivity.objects.get(name=Waiting.name).awake
    calls.seconds = 0
    wait_until(all_in("completed"))


def test_a_full_process_lets_others_know(ring, calls, monkeypatch) -> None:
    wake_ups = []
    monkeypatch.setattr(wake, "_send", wake_ups.append)
    monkeypatch.setattr(Waiting, "concurrency", 3)
    QueueActivity.objects.filter(name=Waiting.name).update(awake=True)
    enqueue_many(Waiting, [{}] * 10)
    ring(Waiting.name)
    wait_until(lambda: wake_ups == [Waiting.name])
    ring(Waiting.name)  # that message came back to the same process
    wait_until(lambda: len(wake_ups) == 2)
    began = time.monotonic()
    while time.monotonic() < began + 0.5:
        ring(Waiting.name)
        time.sleep(0.001)
    assert len(wake_ups) <= 15, "it spins"
    calls.seconds = 0
    wait_until(all_in("completed"))


def test_a_hanging_lane_takes_its_own_places_only(ring, calls) -> None:
    calls.seconds = 0.001
    calls.hanging = {"slow"}
    enqueue_many(WaitingFairly, [{"lane": "slow"}] * 300)
    enqueue_many(WaitingFairly, [{"lane": f"fast{n % 5}"} for n in range(200)])
    ring(WaitingFairly.name)
    wait_until(lambda: completed() == 200)
    assert max(calls.most[key] for key in calls.most if key != "all") == 3
    assert Job.objects.filter(lane="slow", claim_no=0).count() == 297
    calls.hanging.clear()
    wait_until(all_in("completed"))
    assert calls.most["slow"] == 3
    assert set(Job.objects.values_list("claim_no", flat=True)) == {1}


def test_a_hanging_key_takes_its_own_places_only(ring, calls) -> None:
    calls.seconds = 0.001
    calls.hanging = {"slow"}
    enqueue_many(WaitingByKey, [{"routing_key": "slow"}] * 60)
    enqueue_many(WaitingByKey, [{"routing_key": f"fast{n % 5}"} for n in range(100)])
    ring(WaitingByKey.name)
    wait_until(lambda: ring(WaitingByKey.name) or completed() == 100)
    waiting = Job.objects.filter(routing_key="slow", state="pending")
    assert set(waiting.values_list("attempt", flat=True)) == {0}
    error = waiting.first().error
    assert "calls to 'slow' in flight in this process have reached the limit of 3" in error
    assert not Attempt.objects.exists()
    calls.hanging.clear()
    wait_until(all_in("completed"), what="postponed jobs are brought forward as places become free")
    assert max(calls.most[key] for key in calls.most if key != "all") <= 3


def test_a_job_without_a_place_may_be_retried_by_hand(ring, calls) -> None:
    enqueue_many(WaitingByKey, [{"routing_key": "a"}] * 4)
    ring(WaitingByKey.name)
    wait_until(lambda: calls.running["a"] == 3)
    wait_until(lambda: Job.objects.pending().filter(claim_no=1).exists())
    last = Job.objects.pending().get()
    retry_now([last.pk])
    ring(WaitingByKey.name)
    wait_until(lambda: Job.objects.pending().filter(claim_no=2).exists())
    calls.seconds = 0
    wait_until(all_in("completed"))


def test_a_destination_that_raises_fails_its_job_only(ring, calls, monkeypatch) -> None:
    def destination(self, job) -> str:
        if job.routing_key == "bad":
            raise RuntimeError("no such place")
        return job.routing_key

    monkeypatch.setattr(WaitingByKey, "destination", destination)
    calls.seconds = 0
    enqueue_many(WaitingByKey, [{"routing_key": key} for key in ("a", "bad", "b")])
    ring(WaitingByKey.name)
    wait_until(lambda: completed() == 2 and Attempt.objects.exists())
    assert Attempt.objects.get().message == "no such place"


def test_a_locked_job_does_not_stop_the_others(ring, calls) -> None:
    ids = [enqueue(Waiting) for _ in range(5)]
    calls.seconds = 0
    with held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", ids[0]):
        ring(Waiting.name)
        wait_until(lambda: completed() == 4)
    ring(Waiting.name)
    wait_until(all_in("completed"))


def test_a_job_that_lost_its_worker_begins_alone(ring, calls) -> None:
    calls.seconds = 0.05
    suspects = [enqueue(Waiting) for _ in range(3)]
    Job.objects.filter(pk__in=suspects).update(isolate=True)
    enqueue_many(Waiting, [{}] * 10)
    running = []
    original = calls.__class__.__call__

    async def note(job) -> None:
        if job.id in suspects or any(id in suspects for id in running):
            assert not running
        running.append(job.id)
        try:
            await original(calls, job)
        finally:
            running.remove(job.id)

    from tests.sandbox import handlers

    handlers.script[Waiting.name] = note
    ring(Waiting.name)
    wait_until(all_in("completed"))
    assert not Attempt.objects.exists()


def test_jobs_that_wait_for_a_place_are_given_back_when_calls_hang(
    ring, calls, monkeypatch
) -> None:
    """Where calls end fast, a few jobs are claimed ahead. When they hang, others can do those."""
    monkeypatch.setattr(Waiting, "concurrency", 10)
    calls.seconds = 0.005
    enqueue_many(Waiting, [{}] * 3000)
    ring(Waiting.name)
    wait_until(lambda: Job.objects.running().count() > 10, what="some wait for a place")
    calls.seconds = None
    begun = Job.objects.running().values_list("begun", flat=True)
    wait_until(lambda: Counter(begun.all()) == {True: 10})
    assert calls.most["all"] == 10
    assert not Job.objects.pending().exclude(attempt=0).exists(), "they are charged nothing"
    calls.seconds = 0
    wait_until(lambda: Job.objects.filter(state="completed").count() == 3000)
    assert len(calls.began) == 3000


def test_slow_calls_are_not_claimed_ahead(ring, calls, monkeypatch) -> None:
    monkeypatch.setattr(Waiting, "concurrency", 5)
    calls.seconds = 0.3
    enqueue_many(Waiting, [{}] * 20)
    ring(Waiting.name)
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, Job.objects.running().count())
        return completed() == 20

    wait_until(look)
    assert most == 5
