"""Retries of Celery tasks, and other outcomes."""

from datetime import UTC, datetime, timedelta

import pytest
from celery.exceptions import TaskRevokedError

from tailrace.jobs.models import Attempt, Job
from tests.sandbox import durable

pytestmark = pytest.mark.django_db


def test_a_retry_is_the_same_job_and_no_counted_attempt(run_jobs, clock) -> None:
    result = durable.flaky.delay(2)
    run_jobs()
    job = Job.objects.get()
    assert (job.state, job.attempt, job.claim_no) == ("pending", 0, 1)
    assert (result.state, str(result.result)) == ("RETRY", "try 0")
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.error_class) == ("retried", "builtins.ConnectionError")
    assert run_jobs() == 0
    for _retry in range(2):
        clock.step(31)
        run_jobs()
    assert Job.objects.get().attempt == 1
    assert result.get(timeout=1) == 2


def test_after_the_last_retry_the_call_fails_with_its_error(run_jobs, clock) -> None:
    result = durable.flaky.delay(9)
    for _retry in range(5):
        run_jobs()
        clock.step(31)
    job = Job.objects.get()
    assert (job.state, job.claim_no) == ("failed", 3)
    with pytest.raises(ConnectionError, match="try 2"):
        result.get(timeout=1)


def test_without_a_limit_a_call_is_retried_beyond_the_attempts_of_a_job(run_jobs, clock) -> None:
    result = durable.auto.delay(8)
    for retry in range(9):
        assert run_jobs() == 1
        clock.step(10 * 2**retry + 1)
    assert result.get(timeout=1) == 8


def test_a_retry_changes_arguments_and_options(run_jobs, do, clock) -> None:
    def first(self, *args, **kwargs):
        raise self.retry(args=(2,), kwargs={"b": 3}, countdown=5, priority=9, expires=900)

    def second(self, *args, **kwargs):
        request = self.request
        return [args, kwargs, request.retries, request.delivery_info["priority"]]

    do(first, second)
    result = durable.scripted.delay(1)
    run_jobs()
    job = Job.objects.get()
    assert (job.payload["args"], job.priority) == ([2], 3)
    assert timedelta(seconds=3) < job.due_at - datetime.now(UTC) < timedelta(seconds=6)
    clock.step(6)
    run_jobs()
    assert result.get(timeout=1) == [[2], {"b": 3}, 1, 9]


def test_a_retry_at_once_runs_at_once(run_jobs, do) -> None:
    def first(self):
        raise self.retry(countdown=0)

    do(first, lambda self: self.request.retries)
    result = durable.scripted.delay()
    assert run_jobs() == 2
    assert result.get(timeout=1) == 1


def test_a_retry_that_does_not_throw_runs_the_call_again(run_jobs, do) -> None:
    def first(self):
        self.retry(countdown=0, throw=False)

    do(first, lambda self: self.request.retries)
    result = durable.scripted.delay()
    run_jobs()
    assert result.get(timeout=1) == 1


def test_a_task_that_ignores_its_end_keeps_the_state_that_it_stored(run_jobs) -> None:
    result = durable.report.delay(7)
    run_jobs()
    job = Job.objects.get()
    assert (job.state, job.error) == ("cancelled", "ignored by the task")
    assert (result.state, result.info) == ("PROGRESS", {"done": 7})


def test_a_rejected_call_fails_unless_it_is_requeued(run_jobs, clock) -> None:
    durable.reject.delay()
    run_jobs()
    assert Job.objects.get().state == "failed"
    durable.reject.delay(requeue=True)
    run_jobs()
    job = Job.objects.latest("pk")
    assert (job.state, job.attempt) == ("pending", 0)


def test_an_expired_call_is_revoked(run_jobs, clock) -> None:
    result = durable.add.apply_async((1,), expires=30)
    clock.step(31)
    run_jobs()
    job = Job.objects.get()
    assert (job.state, job.error) == ("cancelled", "expired before it began")
    assert result.state == "REVOKED"
    with pytest.raises(TaskRevokedError, match="expired"):
        result.get(timeout=1)


def test_a_task_that_exits_fails_and_its_worker_lives(run_jobs, do) -> None:
    def leave(self):
        raise SystemExit("by")

    do(leave)
    result = durable.scripted.delay()
    run_jobs()
    assert (Job.objects.get().state, result.state) == ("failed", "FAILURE")
    assert "raised SystemExit: by" in str(result.result)


@pytest.mark.parametrize(("ignored", "result"), [(True, None), (False, 1)])
def test_a_retry_keeps_whether_the_result_is_ignored(ignored, result, run_jobs, do) -> None:
    def first(self):
        raise self.retry(countdown=0)

    do(first, lambda self: self.request.retries)
    called = durable.scripted.apply_async(ignore_result=ignored)
    run_jobs()
    assert durable.scripted.AsyncResult(called.id).result == result
