"""Tasks of the class LeavingTask: new calls go to the broker, earlier ones are jobs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from celery import chain, chord, current_app, group

from tailrace.jobs.frameworks.celery_tasks.task import continuing
from tailrace.jobs.models import Job
from tests.kit import broker_length, empty_broker, wait_until, worker
from tests.sandbox import durable
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db(transaction=True)


def notes() -> list[str]:
    return list(Effect.objects.order_by("pk").values_list("note", flat=True))


@pytest.mark.parametrize(
    "call",
    [
        lambda: durable.double.delay(4),
        lambda: durable.double.delay_on_commit(4),
        lambda: durable.double.apply_async_on_commit((4,)),
        lambda: current_app.send_task(durable.double.name, (4,)),
        lambda: chain(durable.double.s(2), durable.double.s()).delay(),
        lambda: group(durable.double.s(4)).delay(),
    ],
)
@pytest.mark.broker
def test_new_calls_go_to_the_broker(call: Callable[[], object]) -> None:
    empty_broker("celery")
    call()
    assert (Job.objects.count(), broker_length("celery")) == (0, 1)


@pytest.mark.slow
@pytest.mark.broker
def test_a_worker_runs_new_calls_and_the_jobs_of_earlier_ones(process_env, tmp_path: Path) -> None:
    empty_broker("celery")
    with continuing():  # as the release before did
        earlier = chord([durable.double.s(1), durable.double.s(2)], durable.tsum.s()).delay()
    durable.double.delay(100)
    chain(durable.double.s(200), durable.double.s()).delay()
    with worker(process_env, ["celery"], log=tmp_path / "worker.log"):
        assert earlier.get(timeout=60) == 6
        wait_until(lambda: Effect.objects.count() == 5)
    assert sorted(notes()) == ["2 * 1", "2 * 100", "2 * 2", "2 * 200", "2 * 400"]
    assert set(Job.objects.values_list("state", flat=True)) == {"completed"}


def test_a_job_that_is_retried_and_replaced_stays_a_job(run_jobs) -> None:
    with continuing():
        result = chain(durable.double_later.s(3), durable.double.s()).delay()
    run_jobs()
    assert result.get(timeout=1) == 24
    assert notes() == ["2 * 3", "2 * 6", "2 * 12"]
    replaced, *others = Job.objects.order_by("pk").values_list("state", flat=True)
    assert (replaced, others) == ("skipped", ["completed"] * 3)


def test_a_job_calls_other_tasks_at_the_broker(run_jobs, do) -> None:
    do(lambda _self: durable.double.delay(5).id)
    result = durable.scripted.delay()
    run_jobs()
    assert result.get(timeout=1)
    assert Job.objects.count() == 1
