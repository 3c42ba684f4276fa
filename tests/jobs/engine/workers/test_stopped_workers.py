"""Real workers that are asked to end while they work, and handlers that harm their connection."""

import os
import signal
from pathlib import Path

import pytest

from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job
from tests.kit import PATIENCE, Worker, empty_broker, wait_until, worker
from tests.sandbox.handlers import Batch, Other, Working
from tests.sandbox.models import Effect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _empty() -> None:
    empty_broker()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


def running() -> bool:
    return Effect.objects.exists() and Job.objects.running().exists()


def ended(started: Worker) -> int:
    return started.process.wait(PATIENCE)


def assert_nothing_lost_or_doubled() -> None:
    """What began is completed, once; the rest is pending as if it was never claimed."""
    rows = set(Job.objects.values_list("state", "attempt"))
    assert rows <= {("completed", 1), ("pending", 0)}, rows
    done = set(Job.objects.filter(state="completed").values_list("id", flat=True))
    assert sorted(Effect.objects.values_list("job_id", flat=True)) == sorted(done)
    assert not Attempt.objects.exists()


def test_sigterm_to_the_group_lets_the_running_call_end(process_env, log, run_jobs) -> None:
    enqueue_many(Working, [{"payload": {"do": "sleep", "seconds": 1}}] * 100)
    with worker(process_env, ["test.work"], log=log, concurrency=2) as stopped:
        wait_until(running, 20)
        stopped.signal(signal.SIGTERM)
        assert ended(stopped) == 0
        assert "WorkerLostError" not in stopped.output
    assert_nothing_lost_or_doubled()
    assert Job.objects.pending().exists(), "the rest was handed back, not worked off"
    finish_quickly()
    run_jobs("test.work")
    assert all_completed()
    assert Effect.objects.count() == 100


def test_sigterm_to_the_group_in_a_batch(process_env, log) -> None:
    enqueue_many(Batch, [{"payload": {"do": "sleep", "seconds": 0.2}}] * 10)
    with worker(process_env, ["test.batch"], log=log) as stopped:
        wait_until(running, 20)
        stopped.signal(signal.SIGTERM)
        assert ended(stopped) == 0
    assert_nothing_lost_or_doubled()
    assert not Job.objects.exclude(state="completed").exists()


def test_sigterm_to_a_busy_child_alone(process_env, log) -> None:
    """It ends after its call; another child takes its place, and the rest of the jobs."""
    enqueue_many(Working, [{"payload": {"do": "sleep", "seconds": 0.5}}] * 100)
    with worker(process_env, ["test.work"], log=log):
        wait_until(running, 20)
        first = Effect.objects.earliest("id").process
        os.kill(first, signal.SIGTERM)
        finish_quickly()
        wait_until(all_completed)
    assert_nothing_lost_or_doubled()
    by_first = Effect.objects.filter(process=first).count()
    assert 0 < by_first < 100 == Effect.objects.count()


def finish_quickly() -> None:
    """Let the jobs that have not begun do nothing more."""
    Job.objects.pending().update(payload={"do": "nothing"})


def all_completed() -> bool:
    tick.tick()
    return not Job.objects.exclude(state="completed").exists()


def test_sigkill_to_the_group_leaves_it_to_the_lease(process_env, log, clock) -> None:
    enqueue_many(Working, [{"payload": {"do": "sleep", "seconds": 60}}] * 3)
    with worker(process_env, ["test.work"], log=log) as killed:
        wait_until(running, 20)
        killed.kill()
    assert rescue.rescue() == 0, "within their lease"
    clock.step(Working.claim_timeout + 1)
    assert rescue.rescue() == 1, "the others were not claimed"
    assert set(Job.objects.values_list("state", flat=True)) == {"pending"}


def test_a_handler_that_fails_behind_its_own_begin(process_env, log) -> None:
    """The innocent jobs after it, of its queue and of another one, ran ten times, or failed."""
    bad = enqueue(Working, {"do": "begin"}, priority=0)
    enqueue_many(Working, [{}] * 5)
    enqueue_many(Other, [{}] * 5)
    with worker(process_env, ["test.work", "test.other"], log=log):
        wait_until(lambda: not unsettled(bad), 40)
    job = Job.objects.get(pk=bad)
    assert (job.state, job.attempt, job.error) == ("pending", 1, "behind its own BEGIN")
    innocent = Job.objects.exclude(pk=bad).values_list("state", "claim_no")
    assert set(innocent) == {("completed", 1)}
    assert Effect.objects.count() == 11 == Effect.objects.values("job_id").distinct().count()
    assert not Job.objects.exclude(progress_note="").exists()


def unsettled(bad: int | None) -> bool:
    tick.tick()
    return (
        Job.objects.exclude(state="completed").exclude(pk=bad).exists()
        or not Attempt.objects.filter(job=bad).exists()
    )
