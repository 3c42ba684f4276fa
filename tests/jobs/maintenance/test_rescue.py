"""Jobs whose worker is lost run again, alone, or have failed."""

import threading
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction

from tailrace.jobs.engine.maintenance.sweeping.sweep import sweep
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, FailureGroup, Job
from tailrace.jobs.runtime import report
from tailrace.jobs.runtime.report import Failure
from tests.kit import at_once, claimed, run_and_settle, wait_until
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db


def test_a_lease_that_holds_is_left_alone(clock) -> None:
    enqueue(Working)
    claimed("test.work")
    clock.step(59)
    assert rescue.rescue() == 0


def test_an_expired_job_is_pending_again_and_isolated(clock) -> None:
    enqueue(Working)
    (lost,) = claimed("test.work")
    clock.step(61)
    assert rescue.rescue() == 1
    job = Job.objects.get()
    assert (job.state, job.attempt, job.isolate, job.lease_until) == ("pending", 1, True, None)
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.claim_no, attempt.worker) == ("lost", 1, lost.worker)


def test_a_lease_of_two_hours_delays_no_other_rescue(clock, monkeypatch) -> None:
    monkeypatch.setattr(Working, "claim_timeout", 7200)
    monkeypatch.setattr(Other, "claim_timeout", 25)
    enqueue_many(Working, [{}] * 300)
    enqueue(Other)
    while claimed("test.work"):
        pass
    claimed("test.other")
    clock.step(30)
    tick.tick()
    states = set(Job.objects.values_list("handler", "state"))
    assert states == {("test.work", "running"), ("test.other", "pending")}


def test_a_job_that_loses_every_worker_fails_after_max_attempts(clock) -> None:
    enqueue(Working)
    for _ in range(3):
        assert len(claimed("test.work")) == 1
        clock.step(61)
        rescue.rescue()
    job = Job.objects.get()
    assert (job.state, job.attempt) == ("failed", 3)
    assert "worker was lost" in job.error
    assert job.finished_at is not None
    assert Attempt.objects.filter(outcome="lost").count() == 3
    assert rescue.rescue() == 0


@pytest.mark.django_db(transaction=True)
def test_each_loss_is_reported_after_the_commit(clock, monkeypatch) -> None:
    failures: list[Failure] = []
    monkeypatch.setattr("tailrace.jobs.runtime.report.reporters", lambda: (failures.append,))
    id = enqueue(Working)
    for number in range(3):
        claimed("test.work")
        clock.step(61)
        with transaction.atomic():
            rescue.rescue()
            assert len(failures) == number
        wait_until(lambda count=number + 1: len(failures) == count)
    assert [(lost.job_id, lost.handler, lost.attempt, lost.final) for lost in failures] == [
        (id, "test.work", 1, False),
        (id, "test.work", 2, False),
        (id, "test.work", 3, True),
    ]
    assert "worker was lost" in failures[0].error


@pytest.mark.django_db(transaction=True)
def test_losses_of_a_silenced_group_are_logged_alone(clock, monkeypatch) -> None:
    """Until the silence is over; those of other handlers are reported."""
    failures: list[Failure] = []
    monkeypatch.setattr(
        "tailrace.jobs.runtime.report.reporters", lambda: (failures.append, report.to_log)
    )
    monkeypatch.setattr(report, "to_log", failures.append)

    def lose(handler: type[Working], times: int) -> list[bool]:
        failures.clear()
        enqueue(handler)
        for _ in range(times):
            claimed(handler.name)
            clock.step(61)
            rescue.rescue()
            report.flush()
        return [failure.silenced for failure in failures]

    assert lose(Working, Working.max_attempts) == [False] * 6, "each by both reporters"
    until = clock.now() + timedelta(hours=1)
    assert FailureGroup.objects.filter(handler="test.work").update(silenced_until=until) == 1
    assert lose(Working, 2) == [True, True], "to the log alone"
    assert lose(Other, 1) == [False, False]
    clock.step(3600)
    rescue.rescue()
    assert lose(Working, 1)[-2:] == [False, False]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("work", [tick.tick, partial(sweep, ["jobs.lease_ended"])])
def test_a_reporter_that_hangs_holds_up_no_upkeep(clock, monkeypatch, work) -> None:
    """Neither a tick nor a sweep waits for it, and no row or turn stays locked."""
    hangs, reported = threading.Event(), threading.Event()
    monkeypatch.setattr("tailrace.jobs.runtime.report.reporters", lambda: (hang,))

    def hang(failure: Failure) -> None:
        hangs.wait()
        reported.set()

    enqueue(Working)
    claimed("test.work")
    clock.step(181)
    try:
        at_once(1, lambda _: work(), seconds=30)
        with transaction.atomic():
            assert Job.objects.select_for_update(nowait=True).get().state == "pending"
        assert sweep(["jobs.lease_ended"])[0].outcome == "checked"
        assert not reported.is_set()
    finally:
        hangs.set()
    wait_until(reported.is_set)


@pytest.mark.django_db(transaction=True)
def test_a_reporter_that_is_too_slow_loses_reports_and_no_more(clock, monkeypatch) -> None:
    hangs, reported = threading.Event(), []
    monkeypatch.setattr(
        "tailrace.jobs.runtime.report.reporters", lambda: (reported.append, lambda _: hangs.wait())
    )
    monkeypatch.setattr("tailrace.jobs.runtime.report.MAX_WAITING", 5)
    enqueue_many(Working, [{}] * 20)
    while claimed("test.work"):
        pass
    clock.step(61)
    try:
        assert rescue.rescue() == 20
        wait_until(lambda: reported)
    finally:
        hangs.set()
    wait_until(lambda: len(reported) == 5)
    assert Job.objects.filter(state="pending").count() == 20


def test_what_settles_after_a_loss_is_no_longer_isolated(clock, scripted) -> None:
    enqueue(Working, {"do": "raise"})
    claimed("test.work")
    clock.step(61)
    rescue.rescue()
    run_and_settle(claimed("test.work"))
    assert not Job.objects.get().isolate


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(clock) -> None:
    id = enqueue(Working)
    follower = enqueue(Working, after=id)
    claimed("test.work")
    Job.objects.filter(pk=id).update(cancel_requested=True)
    clock.step(61)
    rescue.rescue()
    assert set(Job.objects.values_list("id", "state")) == {
        (id, "cancelled"),
        (follower, "cancelled"),
    }


def test_a_lost_job_whose_unique_key_was_taken_is_merged(clock) -> None:
    old = enqueue(Working, unique_key="k")
    claimed("test.work")
    new = enqueue(Working, unique_key="k")
    clock.step(61)
    rescue.rescue()
    job = Job.objects.get(pk=old)
    assert (job.state, job.error) == ("skipped", f"merged into job {new}")


def test_two_lost_jobs_of_one_unique_key_become_one(clock) -> None:
    for _ in range(2):
        enqueue(Working, unique_key="k")
        claimed("test.work")
    other = enqueue(Working)
    claimed("test.work")
    clock.step(61)
    assert rescue.rescue() == 2
    assert rescue.rescue() == 1
    assert rescue.rescue() == 0
    assert sorted(Job.objects.values_list("state", flat=True)) == ["pending", "pending", "skipped"]
    assert Job.objects.get(pk=other).state == "pending"


def test_a_running_job_of_an_unknown_handler_is_given_an_hour(clock) -> None:
    id = enqueue(Working)
    claimed("test.work")
    Job.objects.filter(pk=id).update(handler="test.of_a_newer_deploy")
    clock.step(1800)
    assert rescue.rescue() == 0
    clock.step(3700)
    assert rescue.rescue() == 1
    job = Job.objects.get()
    assert (job.state, job.isolate) == ("pending", True)  # until a worker comes that knows it


def test_what_waits_for_a_lost_job_is_cancelled_when_that_fails(clock, monkeypatch) -> None:
    monkeypatch.setattr(Working, "max_attempts", 1)
    parent = enqueue(Working)
    child = enqueue(Working, after=parent)
    claimed("test.work")
    clock.step(61)
    rescue.rescue()
    job = Job.objects.get(pk=child)
    assert (job.state, job.error) == ("cancelled", f"waited for job {parent}, which was failed")


@pytest.mark.django_db(transaction=True)
def test_several_rescuers_at_once_rescue_each_job_once(clock) -> None:
    enqueue_many(Working, [{}] * 100)
    while claimed("test.work"):
        pass
    clock.step(61)
    assert sum(at_once(4, lambda _: rescue.rescue())) == 100 == Attempt.objects.count()
