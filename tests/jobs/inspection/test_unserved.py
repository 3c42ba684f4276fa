"""A queue is unserved when its jobs are due and do not get on; a busy one never is."""

from datetime import timedelta
from typing import Any

import pytest

from tailrace.db import clock as database_clock
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job, Pulse, Queue, QueueActivity, Throughput
from tailrace.jobs.platform.inspection.queues.unserved import unserved
from tests.jobs import operators
from tests.kit import change_queue
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


class Patient(Handler):
    """Calls may take ten minutes."""

    name = "test.patient"
    time_limit = 600

    def handle(self, job: object) -> None:
        return None


@pytest.fixture(autouse=True)
def _worker() -> None:
    operators.register_handlers()
    queues = ["test.work", "test.ordered", "test.patient"]
    Pulse.objects.create(name="worker:w@test", at=ago(0), queues=queues)


def ago(seconds: float) -> Any:
    return database_clock.now() - timedelta(seconds=seconds)


def due(seconds: float, name: str = "test.work", count: int = 1, **fields: object) -> None:
    for _ in range(count):
        Job.objects.create(handler=name, due_at=ago(seconds), **fields)


def running(seconds: float, name: str = "test.work", **fields: object) -> None:
    Job.objects.create(
        handler=name, state="running", started_at=ago(seconds), lease_until=ago(-60), **fields
    )


def settled(seconds: float, name: str = "test.work") -> None:
    Throughput.objects.create(queue=name, minute=ago(seconds).replace(second=0, microsecond=0))


def reasons() -> dict[str, str]:
    return {queue.name: queue.reason for queue in unserved()}


def test_a_queue_without_worker() -> None:
    due(29, "test.other")
    assert reasons() == {}
    due(31, "test.other")
    assert reasons() == {"test.other": "no worker serves it"}


def test_jobs_behind_a_hung_job() -> None:
    running(7200)
    due(7200, count=49)
    assert reasons() == {
        "test.work": "its 1 running job has not ended for 2 h; the workers have no free capacity"
    }


def test_jobs_behind_a_full_queue() -> None:
    change_queue("test.work", max_running=2, drained_at=ago(1))
    running(7200)
    running(3600)
    due(600)
    [reason] = reasons().values()
    assert reason == "its 2 running jobs have not ended for 1 h; max_running is 2"


def test_jobs_that_a_busy_worker_does_not_reach() -> None:
    running(7200, "test.other")
    due(300)
    assert "no job was claimed for 5 min: the workers are busy" in reasons()["test.work"]


def test_a_backlog_that_is_worked_off_is_served() -> None:
    due(7200, count=500)
    running(7200)
    running(5)  # claimed a moment ago
    assert reasons() == {}


def test_a_backlog_whose_jobs_end_at_once_is_served() -> None:
    due(7200, count=500)
    settled(0)
    assert reasons() == {}
    Throughput.objects.all().delete()
    settled(200)
    assert list(reasons()) == ["test.work"]


def test_long_calls_within_their_time_limit_are_served() -> None:
    due(500, "test.patient")
    running(500, "test.patient")
    assert reasons() == {}
    Job.objects.filter(state="running").update(started_at=ago(700))
    due(700, "test.patient")
    assert list(reasons()) == ["test.patient"]


def test_a_paused_queue_is_not_listed() -> None:
    due(7200)
    Queue.objects.filter(pk="test.work").update(paused_at=ago(60))
    assert reasons() == {}


def test_a_queue_that_waits_for_its_rate_is_not_listed() -> None:
    due(7200)
    change_queue("test.work", rate_limit=0.001, tokens=0, tokens_at=ago(60))
    assert reasons() == {}
    change_queue("test.work", tokens=1)
    assert list(reasons()) == ["test.work"]


def test_a_queue_that_waits_for_the_rate_of_its_handler_is_not_listed(monkeypatch) -> None:
    due(7200)
    change_queue("test.work", tokens=0, tokens_at=ago(60))
    assert list(reasons()) == ["test.work"]
    monkeypatch.setattr(Working, "rate_limit", 0.001)
    assert reasons() == {}
    Queue.objects.create(name="test.work@other")
    QueueActivity.objects.create(name="test.work@other", slice=0, awake=False, tokens=0)
    due(7200, "test.work@other")
    assert reasons() == {}, "nor calls of a task that are routed elsewhere"


def test_a_lane_that_waits_for_a_retry_is_not_listed() -> None:
    due(-600, "test.ordered", lane="a")  # its head: a retry in ten minutes
    due(7200, "test.ordered", lane="a")
    assert reasons() == {}
    due(7200, "test.ordered", lane="b")
    assert list(reasons()) == ["test.ordered"]


def test_a_lane_behind_a_hung_job_is_listed() -> None:
    running(7200, "test.ordered", lane="a")
    due(7000, "test.ordered", lane="a", count=49)
    assert "not ended for 2 h" in reasons()["test.ordered"]
