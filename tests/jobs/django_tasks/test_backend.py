"""Tasks of Django's task framework, enqueued and run."""

from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from tailrace.django_tasks import Backend
from tailrace.jobs.engine import registry
from tailrace.jobs.enqueue import InvalidJob, enqueue
from tailrace.jobs.frameworks.django_tasks.framework import (
    InvalidTask,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    signals,
    task_backends,
)
from tailrace.jobs.handler import Cancel, Permanent, Retry, Skip, Snooze
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tests.sandbox import helpers, tasks
from tests.sandbox.handlers import Log
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db


def do(*calls) -> None:
    """Let the next calls of the task `scripted` do this."""
    tasks.script[:] = calls


def raising(error: BaseException):
    def call() -> None:
        raise error

    return call


def test_a_task_is_a_job_of_a_queue_with_the_path_of_its_function(run_jobs) -> None:
    result = tasks.add.enqueue(1, b=2)
    job = Job.objects.get()
    assert (str(job.pk), job.handler) == (result.id, "tests.sandbox.tasks.add")
    assert (result.status, result.args, result.kwargs) == ("READY", [1], {"b": 2})
    assert (result.attempts, result.started_at, result.is_finished) == (0, None, False)
    assert run_jobs() == 1
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", 3, 1)
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert registry.get(job.handler).description() == "Add two numbers."


def test_a_result_is_the_same_wherever_it_is_read() -> None:
    result = tasks.remind.using(priority=-7, run_after=datetime.now(UTC)).enqueue("ann")
    assert tasks.remind.get_result(result.id) == result


@pytest.mark.django_db(transaction=True)
def test_a_task_is_enqueued_in_the_callers_transaction() -> None:
    with transaction.atomic():
        tasks.add.enqueue(1)
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    with transaction.atomic():
        tasks.add.enqueue(1)
    assert Job.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_task_is_enqueued_and_read_in_async_code() -> None:
    async def enqueued_and_read() -> tuple[TaskResult, TaskResult]:
        result = await tasks.add.aenqueue(1)
        return result, await tasks.add.aget_result(result.id)

    result, same = async_to_sync(enqueued_and_read)()
    assert same == result


def test_an_error_is_listed_with_its_class_and_traceback(run_jobs) -> None:
    result = tasks.fail.enqueue("no paper")
    run_jobs()
    result.refresh()
    [error] = result.errors
    assert (result.status, error.exception_class) == ("FAILED", ValueError)
    assert error.traceback.endswith("ValueError: no paper\n")
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_a_task_is_retried_as_its_options_say(run_jobs, clock) -> None:
    result = tasks.describe.using(priority=5).enqueue(fails=2)
    run_jobs()
    result.refresh()
    assert (result.status, result.attempts) == ("READY", 1)
    clock.step(40)
    run_jobs()
    result.refresh()
    assert (result.attempts, len(result.errors)) == (2, 2)
    first, last = result.started_at, result.last_attempted_at
    assert timedelta(seconds=39) < last - first < timedelta(seconds=60)
    clock.step(80)
    run_jobs()
    result.refresh()
    assert result.return_value == {
        "id": result.id,
        "attempt": 3,
        "status": "RUNNING",
        "errors": ["builtins.ConnectionError"] * 2,
        "workers": 3,
        "priority": 5,
    }
    assert registry.get("tests.sandbox.tasks.describe").max_attempts == 3
    assert registry.get("tests.sandbox.tasks.fail").max_attempts == 1


def test_async_tasks_run_in_the_event_loop(run_jobs) -> None:
    results = [tasks.exchange.enqueue(letter) for letter in "abc"]
    failing = tasks.exchange.enqueue("d", fails=True)
    again = tasks.attempts.enqueue()
    run_jobs()
    for result in (*results, failing, again):
        result.refresh()
    assert [result.return_value for result in results] == ["A", "B", "C"]
    assert (failing.status, failing.errors[0].exception_class) == ("READY", LookupError)
    assert again.return_value == 2
    assert registry.get("tests.sandbox.tasks.exchange").is_async()


@pytest.mark.parametrize(
    ("outcome", "status", "listed"),
    [
        (Skip("nothing to do"), "SUCCESSFUL", []),
        (Cancel("not any more"), "FAILED", ["tailrace.jobs.handler.outcomes.Cancel"]),
        (Permanent("no such user"), "FAILED", ["tailrace.jobs.handler.outcomes.Permanent"]),
        (Retry("busy"), "READY", ["tailrace.jobs.handler.outcomes.Retry"]),
        (Snooze(seconds=60), "READY", []),
        (SystemExit("by"), "READY", ["builtins.SystemExit"]),
    ],
)
def test_outcomes_of_handlers_are_outcomes_of_tasks(outcome, status, listed, run_jobs) -> None:
    do(raising(outcome))
    result = tasks.scripted.enqueue()
    run_jobs()
    result.refresh()
    assert result.status == status
    assert [error.exception_class_path for error in result.errors] == listed


@pytest.mark.parametrize("returned", [object(), {1, 2}, b"\xff"])
def test_a_task_whose_return_value_is_not_json_fails_at_once(returned, run_jobs) -> None:
    do(lambda: returned)
    result = tasks.scripted.enqueue()
    run_jobs()
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == ("FAILED", TypeError)
    assert "the return value is not JSON serializable: Unsupported" in result.errors[0].traceback


def test_a_return_value_that_is_too_large_is_left_out_with_the_reason(run_jobs) -> None:
    do(lambda: "x" * 70_000)
    result = tasks.scripted.enqueue()
    run_jobs()
    result.refresh()
    assert (result.status, result.return_value) == ("SUCCESSFUL", None)
    assert "result not stored: it has 70002 bytes" in result.errors[0].traceback


def test_a_cancelled_task_lists_the_reason(run_jobs) -> None:
    result = tasks.add.enqueue(1)
    cancel([int(result.id)])
    result.refresh()
    assert (result.status, result.attempts) == ("FAILED", 0)
    assert "cancelled" in result.errors[0].traceback


def test_a_replayed_task_keeps_its_earlier_errors(run_jobs) -> None:
    result = tasks.fail.enqueue("no paper")
    run_jobs()
    replay([int(result.id)])
    run_jobs()
    result.refresh()
    assert (len(result.errors), result.attempts) == (2, 2)


def test_run_after_defers_a_task(run_jobs, clock) -> None:
    at = datetime.now(UTC) + timedelta(hours=1)
    result = tasks.add.using(run_after=at).enqueue(1)
    assert run_jobs() == 0
    clock.step(3601)
    assert run_jobs() == 1
    result.refresh()
    assert (result.return_value, result.task.run_after) == (1, at)


def test_more_urgent_tasks_run_first(run_jobs, ten_to_a_claim) -> None:
    for priority in (-100, -1, 0, 1, 50, 51, 100):
        tasks.add.using(priority=priority).enqueue(priority)
    run_jobs()
    ran = [int(each.note.split()[0]) for each in Effect.objects.order_by("pk")]
    assert ran == [51, 100, 1, 50, 0, -100, -1]


def test_the_lane_is_an_argument(run_jobs) -> None:
    tasks.remind.enqueue("ann")
    tasks.remind.enqueue(text="now", user="bob")
    assert [job.lane for job in Job.objects.order_by("pk")] == ["ann", "bob"]
    with pytest.raises(InvalidJob, match="missing a required argument: 'user'"):
        tasks.remind.enqueue(text="for nobody")
    handler = registry.get("tests.sandbox.tasks.remind")
    assert (handler.fair, handler.max_running) == (True, 5)


def test_the_queue_name_is_returned_with_the_result() -> None:
    assert tasks.remind.get_result(tasks.remind.enqueue("ann").id).task.queue_name == "mails"
    with pytest.raises(InvalidTask, match="Queue 'letters' is not valid"):
        tasks.remind.using(queue_name="letters")


def test_arguments_must_be_json() -> None:
    with pytest.raises(TypeError, match="Unsupported type: <class 'datetime"):
        tasks.add.enqueue(datetime.now(UTC))
    with pytest.raises(InvalidJob, match="NUL character"):
        tasks.fail.enqueue("\0")


@pytest.mark.parametrize("id", ["123", "0", "", "-1", "x", "9" * 40, "١"])
def test_there_is_no_result_of_an_unknown_id(id: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(id)


def test_there_is_no_result_of_a_job_of_another_kind() -> None:
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(str(enqueue(Log)))


def test_a_task_that_options_name_is_known_wherever_it_is_defined(run_jobs) -> None:
    result = helpers.helped.using(backend="default").enqueue()
    run_jobs()
    result.refresh()
    assert (result.return_value, result.task.backend) == ("helped", "default")


def test_a_task_that_no_worker_knows_is_refused() -> None:
    with pytest.raises(InvalidTask, match=r"no worker knows the task 'tests\.sandbox\.tasks\.fore"):
        tasks.foreign.using(backend="default").enqueue()
    assert not Job.objects.exists()


def test_signals_are_sent_with_the_result_at_that_time(run_jobs) -> None:
    received = []

    def receive(signal, sender, task_result, **kwargs) -> None:
        received.append((names[signal], sender, task_result.status, task_result.attempts))

    names = {
        signals.task_enqueued: "enqueued",
        signals.task_started: "started",
        signals.task_finished: "finished",
    }
    for signal in names:
        signal.connect(receive)
    try:
        tasks.add.enqueue(1)
        tasks.exchange.enqueue("a")
        run_jobs("tests.sandbox.tasks.add")
        run_jobs("tests.sandbox.tasks.exchange")
        tasks.fail.enqueue("no paper")
        tasks.describe.enqueue(fails=1)
        run_jobs("tests.sandbox.tasks.fail")
        run_jobs("tests.sandbox.tasks.describe")
    finally:
        for signal in names:
            signal.disconnect(receive)
    ok = [("started", Backend, "RUNNING", 1), ("finished", Backend, "SUCCESSFUL", 1)]
    enqueued = [("enqueued", Backend, "READY", 0)] * 2
    failed = [("started", Backend, "RUNNING", 1), ("finished", Backend, "FAILED", 1)]
    retried = [("started", Backend, "RUNNING", 1)]
    assert received == [*enqueued, *ok, *ok, *enqueued, *failed, *retried]


def test_a_receiver_that_raises_does_not_fail_the_task(run_jobs) -> None:
    def receive(**kwargs) -> None:
        raise ZeroDivisionError

    signals.task_finished.connect(receive)
    try:
        result = tasks.add.enqueue(1)
        run_jobs()
    finally:
        signals.task_finished.disconnect(receive)
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 1)


def test_a_removed_task_has_no_result() -> None:
    id = tasks.add.enqueue(1).id
    Job.objects.filter(pk=id).update(handler="tests.sandbox.tasks.removed")
    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_result(id)
