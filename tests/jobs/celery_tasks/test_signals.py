"""The signals and hooks of Celery, with the arguments that it documents."""

import pytest
from celery import chain, chord, signals
from celery.result import AsyncResult

from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tests.sandbox import durable

pytestmark = pytest.mark.django_db


def test_a_call_that_succeeds_sends_the_signals_of_both_sides(run_jobs, received) -> None:
    events = received(
        signals.before_task_publish, signals.after_task_publish, signals.task_prerun,
        signals.task_postrun, signals.task_success, signals.task_failure,
    )  # fmt: skip
    result = durable.add.apply_async((1,), {"b": 2}, headers={"trace": "x"})
    run_jobs()
    names = [name for name, _sender, _arguments in events]
    assert names == [
        "before_task_publish", "after_task_publish", "task_prerun", "task_success", "task_postrun"
    ]  # fmt: skip
    before, after, prerun, success, postrun = events
    assert before[1] == after[1] == "tests.sandbox.durable.add"
    assert before[2].keys() >= {
        "body", "exchange", "routing_key", "headers", "properties", "declare", "retry_policy"
    }  # fmt: skip
    assert before[2]["body"][:2] == ((1,), {"b": 2})
    assert before[2]["headers"]["id"] == after[2]["headers"]["id"] == result.id
    assert (after[2]["routing_key"], after[2]["headers"]["trace"]) == ("celery", "x")
    own = {"task_id": result.id, "task": durable.add, "args": [1], "kwargs": {"b": 2}}
    assert (prerun[1], prerun[2]) == (durable.add, own)
    assert (success[1], success[2]["result"]) == (durable.add, 3)
    assert postrun[2] == own | {"retval": 3, "state": "SUCCESS"}


def test_headers_that_a_receiver_adds_reach_the_task(run_jobs, received) -> None:
    def add_header(headers, **kwargs) -> None:
        headers["sentry-trace"] = "abc"

    signals.before_task_publish.connect(add_header)
    try:
        result = durable.describe.delay()
    finally:
        signals.before_task_publish.disconnect(add_header)
    run_jobs()
    assert result.get(timeout=1)["headers"] == {"sentry-trace": "abc"}


def test_failures_and_retries_send_their_signals(run_jobs, received, clock) -> None:
    events = received(signals.task_failure, signals.task_retry, signals.task_postrun)
    durable.flaky.delay(1)
    run_jobs()
    [retry, postrun] = events
    assert (retry[0], retry[1]) == ("task_retry", durable.flaky)
    assert retry[2].keys() >= {"request", "reason", "einfo"}
    assert (str(retry[2]["reason"].exc), postrun[2]["state"]) == ("try 0", "RETRY")
    events.clear()
    failed = durable.fail.delay("no paper")
    run_jobs()
    [failure, postrun] = events
    assert (failure[0], failure[1]) == ("task_failure", durable.fail)
    assert failure[2]["task_id"] == failed.id
    assert (failure[2]["args"], failure[2]["kwargs"]) == (["no paper"], {})
    assert str(failure[2]["exception"]) == "no paper"
    assert failure[2].keys() >= {"traceback", "einfo"}


def test_expired_and_revoked_calls_send_revoked(run_jobs, received, clock) -> None:
    events = received(signals.task_revoked)
    expired = durable.add.apply_async((1,), expires=30)
    clock.step(31)
    run_jobs()
    durable.add.delay(1).revoke()
    assert [(event[2]["expired"], event[2]["terminated"]) for event in events] == [
        (True, False), (False, False)
    ]  # fmt: skip
    assert events[0][2]["request"].id == expired.id
    cancel([Job.objects.latest("pk").pk])


@pytest.mark.django_db(transaction=True)
def test_what_does_not_run_since_a_task_before_it_failed_sends_revoked(run_jobs, received) -> None:
    """A table of tasks that the signals feed would show it as waiting for ever."""
    published, events = received(signals.before_task_publish), received(signals.task_revoked)
    add, fail = durable.add, durable.fail
    last = chain(fail.si(), add.si(1), add.si(2)).delay()
    body = chord([add.si(1), fail.si()], add.si(3)).delay()
    fail.apply_async(link=add.si(4))
    run_jobs()
    not_run = [event[2]["headers"]["id"] for event in published if event[1] == add.name]
    not_run = [id for id in not_run if AsyncResult(id).state != "SUCCESS"]
    assert len(not_run) == 4
    assert {last.id, last.parent.id, body.id} <= set(not_run)
    assert sorted(event[2]["request"].id for event in events) == sorted(not_run)
    assert {event[1] for event in events} == {add}


def test_the_hooks_of_a_base_class_are_called(run_jobs, do, clock) -> None:
    def retries(self, *args, **kwargs):
        raise self.retry(exc=LookupError("a"), countdown=1)

    def fails(self, *args, **kwargs):
        raise ValueError("b")

    do(retries, fails, lambda self, *args, **kwargs: "c")
    first = durable.scripted.delay(1, x=2)
    run_jobs()
    clock.step(2)
    run_jobs()
    second = durable.scripted.delay()
    run_jobs()
    shown = [tuple(map(repr, hook)) for hook in durable.Base.hooks]
    own, other = (repr(first.id), "[1]", "{'x': 2}"), (repr(second.id), "[]", "{}")
    assert shown == [
        ("'before_start'", *own),
        ("'on_retry'", "LookupError('a')", *own, "'ExceptionInfo'"),
        ("'before_start'", *own),
        ("'on_failure'", "ValueError('b')", *own, "'ExceptionInfo'"),
        ("'after_return'", "'FAILURE'", "ValueError('b')", *own),
        ("'before_start'", *other),
        ("'on_success'", "'c'", *other),
        ("'after_return'", "'SUCCESS'", "'c'", *other),
    ]


def test_an_error_is_logged_once_by_celery_and_not_as_a_second_error(run_jobs, caplog) -> None:
    """Sentry reports the exception, and each log line of the level ERROR that is not Celery's."""
    caplog.set_level("INFO")
    durable.fail.delay()
    run_jobs()
    levels = {(line.name, line.levelname) for line in caplog.records}
    assert ("tailrace.jobs.runtime.report", "INFO") in levels
    assert [name for name, level in levels if level == "ERROR"] == ["celery.app.trace"]


def test_what_celery_does_not_log_is_an_error_of_ours(run_jobs, caplog, do) -> None:
    def leave(self, *args, **kwargs):
        raise SystemExit(3)

    do(leave)
    durable.scripted.delay()
    run_jobs()
    levels = [(line.name, line.levelname) for line in caplog.records]
    assert ("tailrace.jobs.runtime.report", "ERROR") in levels
