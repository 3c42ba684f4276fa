"""Workers with `max_tasks_per_child`, which run one job for each wake-up."""

import pytest

from tailrace.jobs.frameworks.celery_tasks import worker
from tailrace.jobs.models import Job
from tailrace.jobs.tasks import work_off
from tests.sandbox import durable

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _counts_tasks(monkeypatch) -> None:
    monkeypatch.setattr(worker, "counts_tasks", True)


def states() -> list[tuple[str, str]]:
    return [(job.handler, job.state) for job in Job.objects.order_by("pk")]


def test_a_wake_up_without_a_job_runs_one_of_another_queue_with_the_same_workers() -> None:
    durable.identity.delay(1)
    durable.identity.delay(2)
    assert work_off(durable.add.name) == 1
    name = durable.identity.name
    assert states() == [(name, "completed"), (name, "pending")]


def test_it_leaves_queues_of_other_workers_alone() -> None:
    durable.identity.apply_async((1,), queue="media")
    assert work_off(durable.add.name) == 0
    assert [state for _name, state in states()] == ["pending"]


def test_it_runs_one_job_at_most() -> None:
    durable.identity.delay(1)
    durable.add.delay(1)
    assert work_off(durable.add.name) == 1
    assert states() == [(durable.identity.name, "pending"), (durable.add.name, "completed")]


def test_other_workers_keep_to_the_queue_of_the_wake_up(monkeypatch) -> None:
    monkeypatch.setattr(worker, "counts_tasks", False)
    durable.identity.delay(1)
    assert work_off(durable.add.name) == 0
    assert [state for _name, state in states()] == ["pending"]
