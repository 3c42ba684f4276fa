"""Real workers that have to end: what runs has its timeout, and nothing waits for a lease."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from celery import current_app

from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job
from tests.kit import PATIENCE, Worker, empty_broker, held, wait_until, worker
from tests.sandbox.handlers import Working
from tests.sandbox.models import Effect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

TIMEOUT = "1"
FOREVER = 600.0
"""Seconds of a call that cannot have ended by itself."""


@pytest.fixture(autouse=True)
def _empty() -> None:
    empty_broker()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


@pytest.fixture
def short_env(process_env: dict[str, str]) -> dict[str, str]:
    return process_env | {"SHUTDOWN_TIMEOUT": TIMEOUT}


def begun() -> int:
    return Effect.objects.count()


def to_main(number: signal.Signals) -> Callable[[Worker], None]:
    return lambda started: started.process.send_signal(number)


def to_group(number: signal.Signals) -> Callable[[Worker], None]:
    return lambda started: os.killpg(started.process.pid, number)


ENDS = {
    "SIGTERM to the group": to_group(signal.SIGTERM),
    "SIGTERM to the main process": to_main(signal.SIGTERM),
    "SIGINT to the group": to_group(signal.SIGINT),
    "SIGQUIT to the group": to_group(signal.SIGQUIT),
    "SIGQUIT to the main process": to_main(signal.SIGQUIT),
    "celery control shutdown": lambda started: current_app.control.shutdown([started.node]),
}
LIKE_OTHERS = ("SIGINT to the group", "SIGQUIT to the main process")


@pytest.mark.parametrize(
    "end",
    [pytest.param(end, marks=pytest.mark.long if end in LIKE_OTHERS else ()) for end in ENDS],
)
def test_long_calls_are_interrupted_and_run_elsewhere(end: str, short_env, log, run_jobs) -> None:
    enqueue_many(Working, [{"payload": {"do": "sleep", "seconds": FOREVER}}] * 5)
    with worker(short_env, ["test.work"], log=log, concurrency=2) as ended:
        wait_until(lambda: begun() == 2)
        ENDS[end](ended)
        ended.process.wait(PATIENCE)
    assert_all_given_back(interrupted=2)
    Job.objects.update(payload={"do": "nothing"})
    run_jobs("test.work")
    assert set(Job.objects.values_list("state", flat=True)) == {"completed"}
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}


def assert_all_given_back(interrupted: int) -> None:
    """All jobs are pending and due, charged nothing; of those that had begun there is a row."""
    assert set(Job.objects.values_list("state", "attempt")) == {("pending", 0)}
    rows = Attempt.objects.values_list("outcome", "message")
    assert list(rows) == [("interrupted", "interrupted: its worker had to end")] * interrupted


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
def test_a_call_that_cannot_be_interrupted_is_abandoned(pool: str, short_env, log) -> None:
    enqueue_many(Working, [{"payload": {"do": "sleep through", "seconds": FOREVER}}] * 2)
    with worker(short_env, ["test.work"], log=log, pool=pool) as ended:
        wait_until(begun)
        ended.process.send_signal(signal.SIGTERM)
        ended.process.wait(PATIENCE)
        wait_until(lambda: "shutdown.abandoned" in ended.output)  # its child may write it later
    assert_all_given_back(interrupted=1)


def test_a_call_may_end_within_its_timeout(process_env, log) -> None:
    """It asks `job.shutting_down()`."""
    enqueue_many(Working, [{"payload": {"do": "sleep politely", "seconds": FOREVER}}] * 4)
    with worker(process_env, ["test.work"], log=log, concurrency=2) as ended:
        wait_until(lambda: begun() == 2)
        ended.process.send_signal(signal.SIGTERM)
        assert ended.process.wait(PATIENCE) == 0
    states = sorted(Job.objects.values_list("state", "attempt"))
    assert states == [("completed", 1)] * 2 + [("pending", 0)] * 2
    assert not Attempt.objects.exists()


def test_idle_children_take_what_a_slow_call_leaves(process_env, log, tmp_path) -> None:
    """One claim of ten slow jobs kept them from three idle children."""
    until = str(tmp_path / "go on")
    enqueue_many(Working, [{"payload": {"do": "wait", "note": until}}] * 8)
    with worker(process_env, ["test.work"], log=log, concurrency=4):
        wait_until(lambda: begun() == 4)
        assert Job.objects.running().count() == 4
        Path(until).touch()
        wait_until(lambda: Job.objects.filter(state="completed").count() == 8)
    assert Effect.objects.count() == 8


def test_a_child_that_hangs_ends_with_its_worker(short_env, log) -> None:
    """No signal that can be caught reaches a child that is stopped."""
    enqueue_many(Working, [{"payload": {"do": "sleep", "seconds": FOREVER}}])
    with worker(short_env, ["test.work"], log=log) as ended:
        wait_until(begun)
        [child] = psutil.Process(ended.process.pid).children()
        child.suspend()
        ended.process.send_signal(signal.SIGTERM)
        assert ended.process.wait(PATIENCE) == 1
        assert "shutdown.forced" in ended.output
        wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    assert Job.objects.running().count() == 1, "until its lease ends"


def test_a_call_that_ended_in_time_is_settled_when_the_timeout_is_over(
    process_env, log, tmp_path
) -> None:
    """Its settlement waited to try again when the worker gave its running jobs back."""
    until = tmp_path / "go on"
    id = enqueue(Working, {"do": "wait", "note": str(until)})
    env = process_env | {"SHUTDOWN_TIMEOUT": "10"}
    with worker(env, ["test.work"], log=log) as ended:
        wait_until(begun)
        with held("SELECT 1 FROM tailrace_jobs_live WHERE id = %s FOR UPDATE", id):
            ended.process.send_signal(signal.SIGTERM)
            until.touch()
            # Then it waits for 2.7 s, while the timeout ends.
            wait_until(lambda: ended.output.count("settle.retry") == 4)
        ended.process.wait(PATIENCE)
    # It is running until its lease ends if this machine was too slow for four tries in time.
    assert Job.objects.get(pk=id).state in ("completed", "running")
    assert not Attempt.objects.exists()
