"""Calls of Celery tasks that run as jobs."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from celery import current_app, group
from celery.exceptions import ImproperlyConfigured, TimeoutError
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.engine import registry
from tailrace.jobs.frameworks.celery_tasks.message.encoding import NotJson
from tailrace.jobs.models import Attempt, CeleryTask, Job, Queue
from tailrace.jobs.operations.replay import replay
from tests.kit import claimed
from tests.sandbox import durable
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db


def test_a_call_is_a_job_with_the_name_of_the_task(run_jobs) -> None:
    result = durable.add.delay(1, b=2)
    job = Job.objects.get()
    assert job.handler == "tests.sandbox.durable.add"
    assert CeleryTask.objects.get().job_id == job.pk
    assert (result.state, result.ready()) == ("PENDING", False)
    assert run_jobs() == 1
    result = durable.add.AsyncResult(result.id)
    assert (result.state, result.get(timeout=1)) == ("SUCCESS", 3)
    assert registry.get(job.handler).description() == "Add two numbers."


@pytest.mark.django_db(transaction=True)
def test_a_rollback_leaves_nothing() -> None:
    with transaction.atomic():
        durable.add.delay(1)
        durable.add.delay_on_commit(1)
        (durable.add.s(1) | durable.add.s(2)).delay()
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert not CeleryTask.objects.exists()
    with transaction.atomic():
        durable.add.delay_on_commit(1)
        assert Job.objects.count() == 1


def test_publishing_needs_no_broker(configured) -> None:
    configured(broker_url="redis://127.0.0.1:1/0")
    durable.add.apply_async((1,), countdown=60)
    (durable.add.s(1) | durable.tsum.s()).delay()
    assert Job.objects.count() == 3


def test_the_request_is_that_of_celery(run_jobs) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    result = durable.describe.apply_async(
        (1,), {"x": 2}, task_id="my-id", eta=at, priority=3, headers={"tenant": "ann"}
    )
    run_jobs()
    request = result.get(timeout=1)
    assert result.id == request["id"] == request["root_id"] == "my-id"
    assert (request["task"], request["retries"]) == ("tests.sandbox.durable.describe", 0)
    assert (request["args"], request["kwargs"]) == ([1], {"x": 2})
    assert (request["is_eager"], request["called_directly"]) == (False, False)
    assert request["eta"] == at.isoformat()
    assert request["headers"] == {"tenant": "ann"}
    assert request["delivery_info"] == {
        "exchange": "", "routing_key": "celery", "priority": 3, "redelivered": False
    }  # fmt: skip
    assert "@" in request["hostname"]


def test_a_call_in_a_task_has_it_as_its_parent(run_jobs, do) -> None:
    do(lambda self: durable.describe.delay().id)
    outer = durable.scripted.delay()
    run_jobs()
    inner = durable.describe.AsyncResult(outer.get(timeout=1)).get(timeout=1)
    assert (inner["parent_id"], inner["root_id"]) == (outer.id, outer.id)
    outer = durable.scripted.AsyncResult(outer.id)
    assert [child.id for child in outer.children] == [inner["id"]]
    assert [value for _result, value in outer.collect()] == [inner["id"], inner]


def test_arguments_and_results_travel_as_kombus_json_carries_them(run_jobs) -> None:
    values = [
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), date(2026, 1, 2), time(3, 4), Decimal("1.50"),
        uuid4(), b"bytes", b"\xff\xfe", None, True, "ü", {"a": [UUID(int=1)]},
    ]  # fmt: skip
    result = durable.identity.delay(values)
    run_jobs()
    assert result.get(timeout=1) == values


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1, {1, 2}), {}, r"durable\.add: argument 2 \(of type builtins\.set\) is not JSON"),
        ((1,), {"b": object()}, r"durable\.add: argument 'b' \(of type builtins\.object\) is not"),
        (
            ("\0",),
            {},
            r"durable\.add: argument 1 \(of type builtins\.str\) is not JSON: it has a N",
        ),
        ((float("nan"),), {}, r"argument 1 \(of type builtins\.float\) is not JSON"),
    ],
)
def test_arguments_that_are_no_json_are_named_at_the_call(args, kwargs, message: str) -> None:
    with pytest.raises(NotJson, match=message):
        durable.add.apply_async(args, kwargs)
    assert not Job.objects.exists()


@pytest.mark.parametrize("serializer", ["pickle", "yaml"])
def test_other_serializers_are_refused(serializer: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"has the serializer '{serializer}'"):
        durable.add.apply_async((1,), serializer=serializer)


def test_wrong_arguments_are_refused_at_the_call() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        durable.add.delay()


def test_countdown_and_eta_defer_a_call(run_jobs, clock) -> None:
    durable.add.apply_async((1,), countdown=60)
    durable.add.apply_async((2,), eta=datetime.now(UTC) + timedelta(seconds=60))
    durable.add.apply_async(
        (3,), eta=datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=60)
    )
    assert run_jobs() == 0
    clock.step(61)
    assert run_jobs() == 3


def test_the_first_priority_of_redis_runs_first(run_jobs, ten_to_a_claim) -> None:
    for priority in (9, 6, 3, 0, None):
        durable.add.apply_async((str(priority), ""), priority=priority)
    run_jobs()
    ran = [each.note for each in Effect.objects.order_by("pk")]
    assert ran == ["0 + ", "None + ", "3 + ", "6 + ", "9 + "]


def test_a_failure_is_final_with_its_own_class_and_traceback(run_jobs) -> None:
    result = durable.fail.delay("no paper")
    run_jobs()
    job, attempt = Job.objects.get(), Attempt.objects.get()
    assert (job.state, job.attempt, job.error) == ("failed", 1, "no paper")
    assert (attempt.error_class, attempt.outcome) == ("builtins.ValueError", "failed")
    assert "raise ValueError(message)" in attempt.traceback
    assert (result.state, result.failed()) == ("FAILURE", True)
    with pytest.raises(ValueError, match="no paper"):
        result.get(timeout=1)
    assert "ValueError: no paper" in result.traceback


def test_a_failed_call_can_be_replayed(run_jobs, do) -> None:
    def raises(self):
        raise LookupError

    do(raises, lambda self: "well")
    result = durable.scripted.delay()
    run_jobs()
    assert result.state == "FAILURE"
    replay([Job.objects.get().pk])
    run_jobs()
    assert durable.scripted.AsyncResult(result.id).get(timeout=1) == "well"


def test_a_result_that_is_no_json_fails_the_call(run_jobs, do) -> None:
    do(lambda self: object())
    result = durable.scripted.delay()
    run_jobs()
    assert result.state == "FAILURE"
    assert type(result.result).__name__ == "EncodeError"


def test_a_long_result_is_kept(run_jobs, do) -> None:
    do(lambda self: "x" * 100_000)
    result = chained = (durable.scripted.s() | durable.identity.s()).delay()
    run_jobs()
    assert len(chained.parent.get(timeout=1)) == len(result.get(timeout=1)) == 100_000


def test_an_ignored_result_is_not_stored(run_jobs) -> None:
    result = durable.silent.delay(1)
    run_jobs()
    assert result.get() is None
    job = Job.objects.get()
    assert (job.state, job.result) == ("completed", None)
    stored = durable.add.apply_async((1,), ignore_result=True)
    run_jobs()
    assert durable.add.AsyncResult(stored.id).result is None


def test_send_task_by_name_creates_a_job(run_jobs) -> None:
    result = current_app.send_task("tests.sandbox.durable.add", (1, 2))
    run_jobs()
    assert result.get(timeout=1) == 3


def test_eager_calls_create_no_job(configured) -> None:
    configured(task_always_eager=True)
    assert durable.add.delay(1, 2).get() == 3
    assert (durable.add.s(1) | durable.add.s(2)).delay().get() == 3
    assert durable.add.apply((1, 2)).get() == 3
    assert durable.add(1, 2) == 3
    assert not Job.objects.exists()


def test_an_id_that_is_used_again_runs_again(run_jobs) -> None:
    for number in (1, 2):
        durable.add.apply_async((number,), task_id="report")
    assert run_jobs() == 2
    assert durable.add.AsyncResult("report").get(timeout=1) == 2


def test_a_plain_task_stays_what_it_was(run_jobs) -> None:
    assert registry.find("tests.sandbox.durable.plain") is None
    assert durable.plain.AsyncResult("no-such-id").state == "PENDING"


@pytest.mark.django_db(transaction=True)
def test_a_result_cannot_be_awaited_in_the_transaction_of_its_call() -> None:
    with (
        pytest.raises(RuntimeError, match="called in this transaction, which is still open"),
        transaction.atomic(),
    ):
        durable.add.delay(1).get(timeout=60)


def test_results_expire_as_celery_is_configured(run_jobs, clock) -> None:
    result = durable.add.delay(1, 1)
    run_jobs()
    clock.step(86_400 + 60)
    assert durable.add.AsyncResult(result.id).state == "PENDING"


def test_a_forgotten_result_is_unknown(run_jobs) -> None:
    result = durable.add.delay(1, 1)
    run_jobs()
    result.forget()
    assert durable.add.AsyncResult(result.id).state == "PENDING"
    assert Job.objects.get().state == "completed"


@pytest.mark.parametrize(("limit", "calls"), [("2/h", 1), ("3/s", 3), (None, 5), (0, 5)])
def test_the_rate_limit_of_a_task_holds_for_all_workers(monkeypatch, clock, limit, calls) -> None:
    monkeypatch.setattr(durable.add, "rate_limit", limit)
    group(durable.add.s(n, 1) for n in range(5)).delay()
    clock.step(1800)
    assert len(claimed(durable.add.name)) + len(claimed(durable.add.name)) == calls


@pytest.mark.django_db(transaction=True)
def test_waiting_for_results_reads_the_live_jobs_alone(run_jobs) -> None:
    """The history has a partition for each day: to plan a statement on all of them, again and
    again, takes longer than the call."""
    results = [durable.add.delay(number, 1) for number in range(3)]
    with CaptureQueriesContext(connection) as waiting, pytest.raises(TimeoutError):
        results[0].get(timeout=0)
    run_jobs()
    with CaptureQueriesContext(connection) as ended:
        assert [result.get(timeout=1) for result in results] == [1, 2, 3]
    assert not any("tailrace_jobs_job" in query["sql"] for query in waiting)
    assert sum("tailrace_jobs_job" in query["sql"] for query in ended) == 3


def call_five_times() -> None:
    group(durable.add.s(n, 1) for n in range(5)).delay()
    durable.add.apply_async((1, 1), queue="other")


def stored_limits() -> list[float | None]:
    names = [durable.add.name, f"{durable.add.name}@other"]
    return list(Queue.objects.filter(name__in=names).values_list("rate_limit", flat=True))


@pytest.mark.parametrize(
    ("declared", "limit", "calls"),
    [(None, "2/h", 1), ("2/h", "3/s", 3), ("2/h", 0, 5), ("2/h", None, 5)],
)
def test_control_limits_the_rate_of_a_task(declared, limit, calls, clock, monkeypatch) -> None:
    """It had no effect."""
    monkeypatch.setattr(durable.add, "rate_limit", declared)
    call_five_times()
    current_app.control.rate_limit(durable.add.name, limit)
    assert len(stored_limits()) == 2
    assert len(set(stored_limits())) == 1, "also calls that are routed elsewhere"
    clock.step(1800)
    assert len(claimed(durable.add.name)) + len(claimed(durable.add.name)) == calls


def test_a_rate_that_cannot_be_read_changes_nothing() -> None:
    call_five_times()
    with pytest.raises((KeyError, ValueError)):
        current_app.control.rate_limit(durable.add.name, "10/x")
    assert stored_limits() == [None, None]
