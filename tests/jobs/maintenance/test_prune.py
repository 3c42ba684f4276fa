"""What is past its retention is deleted in bounded batches; what is live stays."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection, transaction

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.pruning import prune
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import (
    Attempt,
    Bucket,
    FailureHour,
    Job,
    Pulse,
    Replay,
    ReplayedJob,
    RequestKey,
    Schedule,
    Slot,
    SweepRun,
    Throughput,
)
from tailrace.jobs.runtime import audit
from tests.kit import at_once
from tests.sandbox.event_types import Happened, Whispered
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db

DAY = 86_400


@pytest.fixture(autouse=True)
def _retention(settings) -> None:
    settings.JOBS_RETENTION_DAYS = 30
    settings.JOBS_FAILED_RETENTION_DAYS = 90
    settings.JOBS_RECORDS_RETENTION_DAYS = 7
    settings.EVENTS_RETENTION_DAYS = 60


def finished(state: str, clock) -> int:
    id = enqueue(Working)
    Job.objects.filter(pk=id).update(state=state, finished_at=clock.now())
    assert id is not None
    return id


@pytest.mark.parametrize(
    ("state", "days"), [("completed", 30), ("skipped", 30), ("cancelled", 30), ("failed", 90)]
)
def test_a_finished_job_and_its_attempts_go_after_retention(clock, state, days) -> None:
    id = finished(state, clock)
    Attempt.objects.create(job_id=id, claim_no=1, outcome="failed")
    clock.step(days * DAY - 60)
    prune.prune()
    assert Job.objects.exists()
    clock.step(120)
    assert prune.prune()["failed jobs" if state == "failed" else "completed jobs"] == 1
    assert not Job.objects.exists()
    assert not Attempt.objects.exists()


@pytest.mark.parametrize("state", ["pending", "waiting", "running"])
def test_a_live_job_is_never_pruned(clock, state: str) -> None:
    id = enqueue(Working)
    Job.objects.filter(pk=id).update(state=state)
    clock.step(10_000 * DAY)
    prune.prune()
    assert Job.objects.filter(pk=id).exists()


def test_an_event_goes_after_its_retention(clock) -> None:
    publish(NewEvent(Whispered))
    Job.objects.all().delete()
    clock.step(60 * DAY - 60)
    assert prune.prune()["events"] == 0
    clock.step(120)
    assert prune.prune()["events"] == 1


def test_an_event_stays_while_a_job_or_effect_needs_it(clock) -> None:
    (owing,) = publish(NewEvent(Whispered))
    (cause,) = publish(NewEvent("events.quarantined", {"type": "x", "reason": "r"}))
    clock.step(40 * DAY)
    (effect,) = publish(
        NewEvent("events.quarantined", {"type": "x", "reason": "r"}, cause_id=cause.id)
    )
    clock.step(30 * DAY)
    assert prune.prune()["events"] == 0
    clock.step(40 * DAY)
    assert prune.prune()["events"] == 1
    assert not Event.objects.filter(pk=effect.id).exists()
    assert prune.prune()["events"] == 1
    assert list(Event.objects.values_list("id", flat=True)) == [owing.id]


def test_more_than_a_batch_goes_in_one_run(clock, monkeypatch) -> None:
    enqueue_many(Working, [{}] * (2 * prune.BATCH + 5))
    Job.objects.update(state="completed", finished_at=clock.now())
    clock.step(31 * DAY)
    assert prune.prune()["completed jobs"] == 2 * prune.BATCH + 5


def test_a_run_is_bounded_in_time_and_the_next_one_goes_on(clock, monkeypatch) -> None:
    enqueue_many(Working, [{}] * (prune.BATCH + 5))
    Job.objects.update(state="completed", finished_at=clock.now())
    clock.step(31 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(prune, "SECONDS", -1)
        assert set(prune.prune().values()) == {0}
    assert prune.prune()["completed jobs"] == prune.BATCH + 5


def test_kept_failures_do_not_hide_what_is_due(clock) -> None:
    for _ in range(3):
        finished("failed", clock)
    finished("completed", clock)
    clock.step(31 * DAY)
    assert prune.prune()["completed jobs"] == 1
    assert Job.objects.failed().count() == 3


def test_requests_leave_the_log_when_failed_jobs_go(clock, settings) -> None:
    ann = User.objects.create_user("ann")
    for action in (*audit.REQUESTS, "requested to stop", "replayed"):
        audit.record(ann, Job, action, [(1, "test.work 1")])
    clock.step(settings.JOBS_FAILED_RETENTION_DAYS * DAY - 60)
    assert prune.prune()["requests in the log"] == 0
    clock.step(120)
    assert prune.prune()["requests in the log"] == 2
    kept = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(kept) == ["requested to stop", "replayed"]


def test_records_go_after_a_week(clock) -> None:
    schedule = Schedule.objects.create(name="s", handler="test.work", every_seconds=1)
    Slot.objects.create(schedule=schedule, at=clock.now(), outcome="ran")
    SweepRun.objects.create(invariant="x", outcome="checked")
    Throughput.objects.create(queue="test.work", minute=clock.now())
    FailureHour.objects.create(group_id=1, hour=clock.now())
    replay = Replay.objects.create(what="all", at=clock.now())
    ReplayedJob.objects.create(replay=replay, job_id=1, before={}, at=clock.now())
    Pulse.objects.create(name="worker:old")
    Bucket.objects.create(name="mail:user:1", tokens=3, at=clock.now())
    RequestKey.objects.create(user=User.objects.create_user("ann"), key="k", digest="")
    clock.step(7 * DAY + 60)
    SweepRun.objects.create(
        invariant="young", outcome="checked", started_at=clock.now() - timedelta(hours=1)
    )
    deleted = prune.prune()
    assert [deleted[table] for table in prune.RECORDS] == [1] * 9
    assert SweepRun.objects.get().invariant == "young"


def test_a_second_run_deletes_nothing(clock) -> None:
    publish(NewEvent(Happened))
    Job.objects.update(state="completed", finished_at=clock.now())
    clock.step(100 * DAY)
    assert sum(prune.prune().values()) > 0
    assert sum(prune.prune().values()) == 0


@pytest.mark.django_db(transaction=True)
def test_a_locked_row_stops_no_other_from_being_pruned(clock) -> None:
    locked = publish(NewEvent(Whispered))
    publish(NewEvent(Whispered))
    Job.objects.all().delete()
    for name in ("worker:locked", "worker:free"):
        Pulse.objects.create(name=name)
    Throughput.objects.create(queue="test.work", minute=clock.now())
    clock.step(100 * DAY)

    def pruned(_number: int) -> dict[str, int]:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '1s'")
        return prune.prune()

    with transaction.atomic():
        Event.objects.select_for_update().get(pk=locked[0].id)
        Pulse.objects.select_for_update().get(pk="worker:locked")
        [deleted] = at_once(1, pruned)
        assert (
            deleted["events"],
            deleted["tailrace_jobs_pulse"],
            deleted["tailrace_jobs_throughput"],
        ) == (1, 1, 1)
    assert prune.prune()["events"] == 1
