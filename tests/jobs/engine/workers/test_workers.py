"""Real `celery worker` processes on the test's own database and broker."""

import os
import signal
from pathlib import Path

import pytest
from celery import current_app
from django.db import connection
from django.db.models import F

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job
from tests import forks, kept_sessions
from tests.kit import PATIENCE, empty_broker, wait_until, worker
from tests.sandbox.handlers import Batch, Other, Poison, Working
from tests.sandbox.models import Effect
from tests.servers.relay import relay

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _empty() -> None:
    empty_broker()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


def settled(*states: str, handler: str = "test.work") -> bool:
    """With a tick, as beat gives it: all jobs of the queue are in one of these states."""
    tick.tick()
    return not Job.objects.filter(handler=handler).exclude(state__in=states).exists()


def running() -> bool:
    return Effect.objects.exists() and Job.objects.running().exists()


def test_one_queue_alone_is_served_by_name(process_env, log) -> None:
    with worker(process_env, ["test.work"], log=log) as started:
        mine, others = enqueue(Working), enqueue(Other)
        wait_until(lambda: Job.objects.get(pk=mine).state == "completed", 20)
        assert Job.objects.get(pk=others).state == "pending"
        inspect = current_app.control.inspect([started.node], timeout=300)
        assert inspect.ping() == {started.node: {"ok": "pong"}}
        (queues,) = inspect.active_queues().values()
        assert [queue["name"] for queue in queues] == ["test.work"]
        (tasks,) = inspect.registered().values()
        places = ("tests.sandbox.", "tailrace.domains.")  # not the handlers of test modules
        names = {
            name
            for name, handler in registry.all_handlers().items()
            if type(handler).__module__.startswith(places) and "@" not in name
        }
        assert names <= set(tasks)


def test_a_job_that_hangs_in_a_batch_is_found_by_two_processes(process_env, log, tmp_path) -> None:
    """Only its own call counts: its batch, and the parts of it that were cut, do not."""
    payloads = [{"payload": {}}] * 10
    payloads[6] = {"payload": {"do": "wait", "note": str(tmp_path / "never")}}
    enqueue_many(Batch, payloads)
    bad = sorted(Job.objects.values_list("id", flat=True))[6]
    env = process_env | {"JOBS_TIME_LIMIT": "2"}
    with worker(env, ["test.batch"], log=log, concurrency=2):
        wait_until(lambda: settled("completed", "pending", handler="test.batch") and _tried(bad))
    sound = Job.objects.exclude(pk=bad)
    assert set(sound.values_list("state", "attempt")) == {("completed", 1)}
    tries = Attempt.objects.values_list("job_id", "outcome", "message")
    assert list(tries) == [(bad, "retried", "took longer than its time limit of 2 s")]


def _tried(bad: int) -> bool:
    return Attempt.objects.filter(job=bad).exists()


def test_two_workers_share_a_backlog_and_do_each_job_once(process_env, log, tmp_path) -> None:
    enqueue_many(Working, [{"payload": {"do": "sleep", "seconds": 0.01}}] * 150)
    second = tmp_path / "second.log"
    with (
        worker(process_env, ["test.work"], log=log, concurrency=2),
        worker(process_env, ["test.work"], log=second),
    ):
        wait_until(lambda: settled("completed"), 30)
    assert Effect.objects.count() == 150 == Effect.objects.values("job_id").distinct().count()
    assert Effect.objects.values("process").distinct().count() >= 2


def test_a_job_that_kills_workers_fails_and_delays_no_other(process_env, log) -> None:
    poison = enqueue(Poison, {"do": "kill"}, priority=0)
    victims = [enqueue(Poison) for _ in range(5)]
    with worker(process_env, ["test.poison", "test.work"], log=log):
        wait_until(running, 20, "the poison at work")
        others = enqueue_many(Working, [{}] * 5)
        wait_until(lambda: settled("completed"), 20)
        wait_until(lambda: settled("completed", "failed", handler="test.poison"), 40)
    job = Job.objects.get(pk=poison)
    assert (others, job.state, job.attempt) == (5, "failed", Poison.max_attempts)
    assert Attempt.objects.filter(job=poison, outcome="lost").count() == Poison.max_attempts
    assert set(Job.objects.filter(pk__in=victims).values_list("state", flat=True)) == {"completed"}
    # Those that were claimed together with it lose one lease, and no second one; other queues none.
    assert set(Job.objects.filter(handler="test.work").values_list("claim_no", flat=True)) == {1}
    assert max(Job.objects.filter(pk__in=victims).values_list("claim_no", flat=True)) <= 2


@pytest.mark.long
def test_a_worker_that_was_frozen_settles_nothing_when_it_thaws(process_env, log, scripted) -> None:
    id = enqueue(Poison, {"do": "sleep", "seconds": 15})
    scripted("test.poison", lambda job: None)  # in this process
    with worker(process_env, ["test.poison"], log=log) as frozen:
        wait_until(running, 20)
        frozen.signal(signal.SIGSTOP)
        wait_until(lambda: rescue.rescue() == 1, 20, "the lease runs out")
        drain("test.poison")
        owned = Job.objects.get(pk=id)
        assert (owned.state, owned.claim_no) == ("completed", 2)
        frozen.signal(signal.SIGCONT)
        wait_until(lambda: "settle.lease_lost" in frozen.output, 20)
    job = Job.objects.get(pk=id)
    assert (job.state, job.claim_no, job.finished_at) == ("completed", 2, owned.finished_at)
    assert Attempt.objects.get().outcome == "lost"


def test_another_worker_does_the_job_of_a_killed_one(process_env, log, scripted) -> None:
    id = enqueue(Poison, {"do": "sleep", "seconds": 3600})
    scripted("test.poison", lambda job: None)  # in this process
    with worker(process_env, ["test.poison"], log=log) as killed:
        wait_until(running, 20)
        killed.kill()
    assert rescue.rescue() == 0, "within its lease"
    Job.objects.update(lease_until=F("started_at"))
    assert rescue.rescue() == 1
    Job.objects.update(due_at=F("created_at"))
    assert drain("test.poison") == 1
    job = Job.objects.get(pk=id)
    assert (job.state, job.claim_no, job.attempt) == ("completed", 2, 2)


def test_a_worker_continues_when_postgresql_closes_connections(process_env, log) -> None:
    with worker(process_env, ["test.work"], log=log):
        for _ in range(3):
            enqueue(Working)
            wait_until(lambda: settled("completed"), 20)
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> ALL(%s)"
                    " AND backend_type = 'client backend'",
                    [list(kept_sessions.backends())],
                )
                assert cursor.fetchone()[0] >= 1
    assert set(Job.objects.values_list("state", "claim_no")) == {("completed", 1)}


def test_a_broker_that_forgets_everything_costs_a_few_ticks(process_env, log) -> None:
    enqueue_many(Working, [{}] * 30)
    empty_broker()
    with worker(process_env, ["test.work"], log=log):
        for _ in range(5):
            enqueue_many(Working, [{"payload": {"do": "sleep", "seconds": 0.01}}] * 10)
            empty_broker()
        wait_until(lambda: settled("completed"), 30)
    assert Effect.objects.count() == 80 == Effect.objects.values("job_id").distinct().count()


def test_a_broker_outage_under_a_worker_costs_only_time(process_env, log) -> None:
    with (
        relay(process_env["BROKER_URL"]) as broker,
        worker(process_env | {"BROKER_URL": broker.url}, ["test.work"], log=log) as cut_off,
    ):
        enqueue(Working)
        wait_until(lambda: settled("completed"), 20)
        broker.go_away()
        wait_until(lambda: "onnection to broker lost" in cut_off.output, 20)
        enqueue_many(Working, [{}] * 20)
        broker.come_back()
        wait_until(lambda: settled("completed"), 40)
    assert Job.objects.count() == 21
    assert set(Job.objects.values_list("state", "claim_no")) == {("completed", 1)}


def test_sigterm_ends_the_running_drain_and_claims_nothing_more(process_env, log) -> None:
    env = process_env | {"JOBS_DRAIN_SECONDS": "1"}
    enqueue_many(Working, [{"payload": {"do": "sleep", "seconds": 0.3}}] * 400)
    with worker(env, ["test.work"], log=log) as stopped:
        wait_until(running, 20)
        assert stopped.stop() == 0
    states = list(Job.objects.values_list("state", flat=True))
    assert states.count("running") == 0
    assert states.count("pending") > 0
    assert states.count("completed") == Effect.objects.count() > 0
    assert not Attempt.objects.exists()


def test_a_worker_that_starts_without_its_broker_waits_for_it(process_env, log) -> None:
    import subprocess

    env = process_env | {"BROKER_URL": "redis://127.0.0.1:1/0"}
    with log.open("wb") as file:
        process = forks.Fork(
            ["-m", "celery", "-A", "tailrace.config", "worker", "-Q", "test.work"],
            env=env, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: log.read_text().count("Cannot connect to") >= 2, 30)
        assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
