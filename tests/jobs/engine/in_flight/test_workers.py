"""Real workers with calls in flight to a real server that answers late."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.enqueue import enqueue, enqueue_many
from jobs.handler import Handler
from jobs.maintenance import rescue, tick
from jobs.models import Attempt, Job
from tests.kit import PATIENCE, Worker, empty_broker, wait_until, worker
from tests.sandbox.handlers import Waiting, WaitingShortly, Working
from tests.sandbox.models import Effect
from tests.servers.slow import SlowServer, serving_slowly

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.broker, pytest.mark.slow]


@pytest.fixture
def server() -> Iterator[SlowServer]:
    empty_broker()
    with serving_slowly() as server:
        yield server


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


def call(server: SlowServer, milliseconds: int, count: int, handler: type[Handler] = Waiting):
    """Enqueue jobs that wait so long for an answer."""
    payload = {"do": "get", "note": f"{server.url}/{milliseconds}"}
    enqueue_many(handler, [{"payload": payload}] * count)


def in_state(state: str, handler: type[Handler] = Waiting) -> int:
    tick.tick()
    return Job.objects.filter(handler=handler.name, state=state).count()


def assert_each_once(count: int) -> None:
    assert Effect.objects.count() == count == Effect.objects.values("job_id").distinct().count()
    assert set(Job.objects.filter(state="completed").values_list("attempt", "claim_no")) == {(1, 1)}
    assert not Attempt.objects.exists()


def test_a_hundred_calls_in_one_process(process_env, log, server) -> None:
    call(server, 300, 300)
    with worker(process_env, [Waiting.name], log=log):
        wait_until(lambda: in_state("completed") == 300)
    assert server.most[""] == 100
    assert Effect.objects.values("process").distinct().count() == 1
    assert_each_once(300)


def test_two_processes_share_what_one_has_no_places_for(process_env, log, server) -> None:
    call(server, 1000, 200)
    with worker(process_env, [Waiting.name], log=log, concurrency=2):
        wait_until(lambda: in_state("completed") == 200)
    assert server.most[""] > 150
    assert_each_once(200)


def test_other_queues_of_the_child_go_on(process_env, log, server) -> None:
    call(server, 10_000, 100)
    with worker(process_env, [Waiting.name, Working.name], log=log) as started:
        wait_until(lambda: server.open[""] == 100)
        enqueue_many(Working, [{}] * 30)
        wait_until(lambda: in_state("completed", Working) == 30)
        assert in_state("running") == 100
        assert Effect.objects.values("process").distinct().count() == 1
        started.kill()


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_the_other_pools_have_calls_in_flight_too(pool, process_env, log, server) -> None:
    call(server, 1000, 100)
    queues = [Waiting.name, Working.name]
    with worker(process_env, queues, log=log, concurrency=2, pool=pool) as started:
        wait_until(lambda: server.open[""] == 100)
        enqueue_many(Working, [{}] * 5)
        wait_until(lambda: in_state("completed", Working) == 5)
        wait_until(lambda: in_state("completed") == 100)
        call(server, 1001, 120)
        wait_until(lambda: server.open["/1001"] == 100)
        assert started.stop() == 0
    assert in_state("completed") == 200
    assert in_state("pending") == 20
    assert_each_once(205)


def to_main(started: Worker) -> None:
    started.process.send_signal(signal.SIGTERM)


def to_group(started: Worker) -> None:
    started.signal(signal.SIGTERM)


def quit_group(started: Worker) -> None:
    started.signal(signal.SIGQUIT)


def quit_main(started: Worker) -> None:
    started.process.send_signal(signal.SIGQUIT)


@pytest.mark.parametrize("end", [to_main, to_group, quit_main, quit_group])
def test_a_worker_that_has_to_end_settles_its_calls(end, process_env, log, server) -> None:
    call(server, 1000, 150)
    with worker(process_env, [Waiting.name], log=log) as started:
        wait_until(lambda: server.open[""] == 100)
        end(started)
        started.process.wait(PATIENCE)
    assert in_state("completed") == 100
    assert Job.objects.pending().filter(claim_no=0).count() == 50
    assert_each_once(100)


def test_sigterm_to_the_child_alone(process_env, log, server) -> None:
    call(server, 50, 1)
    with worker(process_env, [Waiting.name], log=log):
        wait_until(lambda: in_state("completed") == 1)
        child = Effect.objects.get().process
        call(server, 1000, 150)
        wait_until(lambda: server.open[""] == 100)
        os.kill(child, signal.SIGTERM)
        wait_until(lambda: in_state("completed") == 151)
    assert Effect.objects.filter(process=child).count() == 101
    assert_each_once(151)


def test_what_does_not_end_in_time_is_done_elsewhere_at_once(
    process_env, log, server, tmp_path
) -> None:
    call(server, 60_000, 50)
    env = process_env | {"SHUTDOWN_GRACE": "1"}
    with worker(env, [Waiting.name], log=log) as started:
        wait_until(lambda: server.open[""] == 50)
        began = time.monotonic()
        to_group(started)
        started.process.wait(PATIENCE)
        assert time.monotonic() - began < 20
    assert set(Job.objects.values_list("state", "attempt", "claim_no")) == {("pending", 0, 1)}
    Job.objects.update(payload={"do": "nothing"})
    with worker(process_env, [Waiting.name], log=tmp_path / "second.log"):
        wait_until(lambda: in_state("completed") == 50)


def test_sigkill_leaves_calls_to_their_leases(process_env, log, server, clock) -> None:
    call(server, 60_000, 100)
    with worker(process_env, [Waiting.name], log=log) as started:
        wait_until(lambda: server.open[""] == 100)
        started.kill()
    assert rescue.rescue() == 0, "within their lease"
    clock.step(Waiting.claim_timeout + 1)
    assert rescue.rescue() == 100
    assert set(Job.objects.values_list("state", "attempt", "isolate")) == {("pending", 1, True)}


def test_a_job_that_kills_its_process_harms_others_once(process_env, log, server) -> None:
    call(server, 300, 10, WaitingShortly)
    bad = enqueue(WaitingShortly, {"do": "kill"})
    with worker(process_env, [WaitingShortly.name], log=log):
        wait_until(lambda: in_state("failed", WaitingShortly) == 1, what="its attempts are used up")
        wait_until(lambda: in_state("completed", WaitingShortly) == 10)
    assert Job.objects.get(pk=bad).attempt == WaitingShortly.max_attempts
    assert max(Job.objects.exclude(pk=bad).values_list("attempt", flat=True)) <= 2
