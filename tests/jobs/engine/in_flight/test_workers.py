"""Real workers with calls in flight to a real server that answers late."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Attempt, Job
from tests.kit import PATIENCE, Worker, claimed, empty_broker, wait_until, worker
from tests.sandbox.handlers import Waiting, WaitingShortly, Working
from tests.sandbox.models import Effect
from tests.servers.slow import SlowServer, serving_slowly

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def server() -> Iterator[SlowServer]:
    empty_broker()
    with serving_slowly() as server:
        yield server


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


def call(server: SlowServer, path: str, count: int, handler: type[Handler] = Waiting):
    """Enqueue jobs that wait for the answer to this path: "held" comes when the test says so."""
    payload = {"do": "get", "note": f"{server.url}/{path}"}
    enqueue_many(handler, [{"payload": payload}] * count)


def in_state(state: str, handler: type[Handler] = Waiting) -> int:
    tick.tick()
    return Job.objects.filter(handler=handler.name, state=state).count()


def wait_for_open(server: SlowServer, count: int, path: str = "") -> None:
    """Wait until so many calls are in flight."""
    wait_until(lambda: [tick.tick(), server.open[path] >= count][1], what=f"{count} calls")


def wait_for_shutdown(started: Worker) -> None:
    """Wait until the worker knows that it is to end: its children claim nothing more."""
    texts = ("shutdown (MainProcess)", "Hitting Ctrl+C again")  # of SIGTERM and of SIGQUIT
    wait_until(lambda: any(text in started.output for text in texts), what="the signal is noticed")


def assert_each_once(count: int) -> None:
    assert Effect.objects.count() == count == Effect.objects.values("job_id").distinct().count()
    assert set(Job.objects.filter(state="completed").values_list("attempt", "claim_no")) == {(1, 1)}
    assert not Attempt.objects.exists()


def test_a_hundred_calls_in_one_process(process_env, log, server) -> None:
    call(server, "held", 300)
    with worker(process_env, [Waiting.name], log=log):
        wait_for_open(server, 100)
        server.release()
        wait_until(lambda: in_state("completed") == 300)
    assert server.most[""] == 100
    assert Effect.objects.values("process").distinct().count() == 1
    assert_each_once(300)


def test_two_processes_share_what_one_has_no_places_for(process_env, log, server) -> None:
    call(server, "held", 200)
    with worker(process_env, [Waiting.name], log=log, concurrency=2):
        wait_for_open(server, 151)
        server.release()
        wait_until(lambda: in_state("completed") == 200)
    assert_each_once(200)


def test_other_queues_of_the_child_go_on(process_env, log, server) -> None:
    call(server, "held", 100)
    with worker(process_env, [Waiting.name, Working.name], log=log) as started:
        wait_for_open(server, 100)
        enqueue_many(Working, [{}] * 30)
        wait_until(lambda: in_state("completed", Working) == 30)
        assert in_state("running") == 100
        assert Effect.objects.values("process").distinct().count() == 1
        started.kill()


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_the_other_pools_have_calls_in_flight_too(pool, process_env, log, server) -> None:
    call(server, "held/first", 100)
    queues = [Waiting.name, Working.name]
    with worker(process_env, queues, log=log, concurrency=2, pool=pool) as started:
        wait_for_open(server, 100)
        enqueue_many(Working, [{}] * 5)
        wait_until(lambda: in_state("completed", Working) == 5)
        server.release("/held/first")
        wait_until(lambda: in_state("completed") == 100)
        call(server, "held/last", 120)
        wait_for_open(server, 100, "/held/last")
        to_main(started)
        wait_for_shutdown(started)
        server.release("/held/last")
        assert started.process.wait(PATIENCE) == 0
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


@pytest.mark.parametrize(
    "end",
    [
        to_group,
        quit_main,
        pytest.param(to_main, marks=pytest.mark.long),
        pytest.param(quit_group, marks=pytest.mark.long),
    ],
)
def test_a_worker_that_has_to_end_settles_its_calls(end, process_env, log, server) -> None:
    call(server, "held", 150)
    with worker(process_env, [Waiting.name], log=log) as started:
        wait_for_open(server, 100)
        end(started)
        wait_for_shutdown(started)
        server.release()
        started.process.wait(PATIENCE)
    assert in_state("completed") == 100
    assert Job.objects.pending().filter(claim_no=0).count() == 50
    assert_each_once(100)


def test_sigterm_to_the_child_alone(process_env, log, server) -> None:
    call(server, "0", 1)
    with worker(process_env, [Waiting.name], log=log):
        wait_until(lambda: in_state("completed") == 1)
        child = Effect.objects.get().process
        call(server, "held", 150)
        wait_for_open(server, 100)
        os.kill(child, signal.SIGTERM)
        wait_until(lambda: ignores(child, signal.SIGTERM), what="the signal is noticed")
        server.release(after=0.5)
        wait_until(lambda: in_state("completed") == 151)
    assert 101 <= Effect.objects.filter(process=child).count() < 151
    assert_each_once(151)


def ignores(process: int, number: int) -> bool:
    """Whether a process ignores a signal, as a child does once it is to end."""
    status = Path(f"/proc/{process}/status").read_text()
    (ignored,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(ignored, 16) >> (number - 1) & 1)


def test_what_does_not_end_in_time_is_done_elsewhere_at_once(process_env, log, server) -> None:
    call(server, "held", 50)
    env = process_env | {"SHUTDOWN_TIMEOUT": "1"}
    with worker(env, [Waiting.name], log=log) as started:
        wait_for_open(server, 50)
        to_group(started)
        started.process.wait(PATIENCE)
    assert set(Job.objects.values_list("state", "attempt", "claim_no")) == {("pending", 0, 1)}
    assert len(claimed(Waiting.name, 50)) == 50


def test_sigkill_leaves_calls_to_their_leases(process_env, log, server, clock) -> None:
    call(server, "held", 100)
    with worker(process_env, [Waiting.name], log=log) as started:
        wait_for_open(server, 100)
        started.kill()
    assert rescue.rescue() == 0, "within their lease"
    clock.step(Waiting.claim_timeout + 1)
    assert rescue.rescue() == 100
    assert set(Job.objects.values_list("state", "attempt", "isolate")) == {("pending", 1, True)}


def test_a_job_that_kills_its_process_harms_others_once(process_env, log, server) -> None:
    call(server, "100", 10, WaitingShortly)
    bad = enqueue(WaitingShortly, {"do": "kill"})
    with worker(process_env, [WaitingShortly.name], log=log):
        wait_until(lambda: in_state("failed", WaitingShortly) == 1, what="its attempts are used up")
        wait_until(lambda: in_state("completed", WaitingShortly) == 10)
    assert Job.objects.get(pk=bad).attempt == WaitingShortly.max_attempts
    assert max(Job.objects.exclude(pk=bad).values_list("attempt", flat=True)) <= 2
