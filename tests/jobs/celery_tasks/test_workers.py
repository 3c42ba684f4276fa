"""Celery tasks that run as jobs, in real `celery worker` processes."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import chord, group
from celery.exceptions import TaskRevokedError, TimeLimitExceeded
from django.db.models import F

from tailrace.jobs.models import Attempt, Job, Queue
from tests import forks
from tests.kit import ROOT, broker_length, empty_broker, wait_until, worker
from tests.sandbox import durable
from tests.sandbox.models import Effect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.broker]


@pytest.fixture(autouse=True)
def _empty_broker() -> None:
    empty_broker("celery", "media")


def ended(*results: Any) -> Callable[[], bool]:
    return lambda: all(result.ready() for result in results)


def test_a_worker_runs_the_calls_and_the_canvas_of_its_queue(process_env, tmp_path: Path) -> None:
    with worker(process_env, ["celery"], log=tmp_path / "worker.log", concurrency=2):
        result = durable.add.delay(1, b=2)
        assert result.get(timeout=60) == 3
        canvas = (group(durable.add.s(n, n) for n in range(10)) | durable.tsum.s()).delay()
        replaced = chord([durable.pass_on.s(1), durable.join_in.s(1)], durable.identity.s()).delay()
        assert canvas.get(timeout=60) == 90
        assert replaced.get(timeout=60) == [12, 5]
        failing = durable.fail.delay("no paper")
        with pytest.raises(ValueError, match="no paper"):
            failing.get(timeout=60)
        shown = durable.describe.delay().get(timeout=60)
        assert shown["hostname"].startswith("worker-")


def test_a_worker_works_off_what_is_routed_to_its_queues(process_env, tmp_path: Path) -> None:
    here, there = durable.add.apply_async((1, 1), queue="media"), durable.add.delay(2, 2)
    assert set(Job.objects.values_list("handler", flat=True)) == {
        "tests.sandbox.durable.add", "tests.sandbox.durable.add@media"
    }  # fmt: skip
    assert Queue.objects.filter(name="tests.sandbox.durable.add@media").exists()
    assert (broker_length("media"), broker_length("celery")) == (1, 1)
    with worker(process_env, ["media"], log=tmp_path / "media.log"):
        assert here.get(timeout=60) == 2
        assert durable.pid.apply_async(queue="media").get(timeout=60) > 0
        assert there.state == "PENDING"
    with worker(process_env, ["celery"], log=tmp_path / "other.log"):
        assert there.get(timeout=60) == 4


def test_when_the_broker_is_flushed_nothing_is_lost(process_env, tmp_path: Path) -> None:
    results = group(durable.add.s(number, 1) for number in range(60)).delay()
    late = durable.add.apply_async((1, 1), queue="media")
    empty_broker("celery", "media")
    assert (broker_length("celery"), broker_length("media")) == (0, 0)
    with worker(process_env, ["celery", "media"], log=tmp_path / "worker.log"):
        assert sum(results.get(timeout=120)) == sum(range(1, 61))
        assert late.get(timeout=60) == 2
    assert Effect.objects.count() == 61


@pytest.mark.parametrize(
    ("deaths", "state", "calls"),
    [(1, "SUCCESS", 2), pytest.param(99, "FAILURE", 4, marks=pytest.mark.long)],
)
def test_a_call_that_kills_its_worker_runs_again_but_not_for_ever(
    deaths: int, state: str, calls: int, process_env, tmp_path: Path
) -> None:
    path = tmp_path / "calls"
    with worker(process_env, ["celery"], log=tmp_path / "worker.log"):
        result = durable.die.delay(str(path), deaths)

        def is_over() -> bool:
            dead = min(len(path.read_text()), deaths) if path.exists() else 0
            Job.objects.filter(state="running", claim_no__lte=dead).update(
                lease_until=F("started_at") - timedelta(seconds=1)
            )
            return result.ready()

        wait_until(is_over)
    assert (result.state, len(path.read_text())) == (state, calls)
    if state == "SUCCESS":
        assert durable.die.AsyncResult(result.id).get(timeout=1) == 2
    assert Attempt.objects.filter(outcome="lost").count() == min(deaths, 4)


def test_time_limits_of_the_task_and_of_the_call(process_env, tmp_path: Path) -> None:
    with worker(process_env, ["celery"], log=tmp_path / "worker.log", concurrency=2):
        soft = durable.nap_softly.delay(30)
        hard = durable.nap.apply_async((30,), time_limit=1)
        assert soft.get(timeout=60) == "woken"
        with pytest.raises(TimeLimitExceeded):
            hard.get(timeout=60)
        assert durable.nap.delay(0).get(timeout=60) == "rested"
    assert Job.objects.get(state="failed").attempt == 1


def test_a_running_call_ends_when_it_is_revoked_with_terminate(process_env, tmp_path: Path) -> None:
    with worker(process_env, ["celery"], log=tmp_path / "worker.log"):
        result, waiting = durable.nap.delay(600), durable.nap.delay(600)
        wait_until(lambda: Job.objects.filter(state="running").exists())
        running = result if _is_running(result) else waiting
        other = waiting if running is result else result
        other.revoke()
        running.revoke(terminate=True)
        wait_until(ended(result, waiting))
        assert {result.state, waiting.state} == {"REVOKED"}
        with pytest.raises(TaskRevokedError):
            durable.nap.AsyncResult(result.id).get(timeout=1)
        assert durable.nap.delay(0).get(timeout=60) == "rested"
    assert set(Job.objects.values_list("state", flat=True)) == {"cancelled", "completed"}


def _is_running(result: Any) -> bool:
    return Job.objects.filter(payload__id=result.id, state="running").exists()


def test_with_max_tasks_per_child_each_process_runs_one_call(process_env, tmp_path: Path) -> None:
    with worker(
        process_env, ["celery"], log=tmp_path / "worker.log", options=["--max-tasks-per-child=1"]
    ):
        pids = group(durable.pid.s() for _number in range(4)).delay().get(timeout=120)
    assert len(set(pids)) == 4


def test_each_process_knows_the_tasks_when_it_starts(process_env) -> None:
    code = "import django; django.setup(); from tailrace.jobs.engine import registry;"
    code += "print(*registry.all_handlers())"
    done = forks.run(["-c", code], env=process_env, cwd=ROOT, capture_output=True, text=True)
    known = set(done.stdout.split())
    assert {"tests.sandbox.durable.add", "celery.accumulate"} <= known, done.stderr
    rows = set(Queue.objects.active().values_list("name", flat=True))
    assert {name for name in known if name.startswith("tests.sandbox.")} <= rows


def test_a_process_that_has_called_no_task_sends_by_name_reads_results_and_revokes(
    process_env, run_jobs
) -> None:
    done, pending = durable.add.delay(1, 1), durable.add.apply_async((2, 2), countdown=600)
    run_jobs()
    code = f"""
from tailrace.config.celery import app  # as a project's __init__.py does
import django; django.setup()
print(app.AsyncResult({done.id!r}).get(timeout=1))
app.control.revoke({pending.id!r})
print(app.send_task("tests.sandbox.durable.add", (3, 3)).id)
"""
    process = forks.run(["-c", code], env=process_env, cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    result, sent = process.stdout.split()
    assert result == "2"
    assert durable.add.AsyncResult(pending.id).state == "REVOKED"
    assert Job.objects.get(state="pending").payload["id"] == sent


ROOM = "tailrace.jobs.frameworks.celery_tasks"
APP = """
import os; os.environ["CELERY_SKIP_CHECKS"] = "1"
from celery import Celery
app = Celery("shop", task_cls="tailrace.celery:Task", broker="redis://127.0.0.1:1/0")
app.conf.task_routes = {"shop.resize": {"queue": "media"}}
@app.task(name="shop.resize")
def resize(): pass
import django; django.setup()
print(type(app.backend).__module__, type(app.control).__module__)
from tailrace.jobs.engine import registry
names = ["shop.resize", "celery.accumulate", "tailrace.chord_error"]
print(*(f"{name}:{registry.find(name).worker_queue}" for name in names))
"""


def test_all_tasks_of_an_app_run_as_jobs_by_one_line(process_env) -> None:
    done = forks.run(["-c", APP], env=process_env, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        f"{ROOM}.results.backend {ROOM}.control",
        "shop.resize:media celery.accumulate:celery tailrace.chord_error:celery",
    ], done.stderr
