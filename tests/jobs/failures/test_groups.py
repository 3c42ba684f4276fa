"""Attempts that fail are counted in groups, which the settlement of successes does not touch."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.failures import fill_in
from tailrace.jobs.engine.maintenance.pruning import prune
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import Permanent, Snooze
from tailrace.jobs.models import FailureGroup, FailureHour, Job
from tailrace.jobs.runtime import report
from tests.jobs.invariants.sweeping import repaired
from tests.kit import at_once, claimed, held
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def no_order(job: Any) -> None:
    raise Permanent(f"no order {job.id}")


@pytest.fixture
def failing(scripted: Any) -> Any:
    """Return `failing(jobs)`: so many jobs fail, which differ in a number alone."""

    def fail(jobs: int) -> FailureGroup:
        scripted("test.work", no_order)
        enqueue_many(Working, [{}] * jobs)
        drain("test.work")
        return FailureGroup.objects.get()

    return fail


def test_jobs_that_fail_alike_are_one_group(failing, clock) -> None:
    group = failing(3)
    assert (group.handler, group.error_class) == (
        "test.work",
        "tailrace.jobs.handler.outcomes.Permanent",
    )
    assert group.frame == "tests/jobs/failures/test_groups.py in no_order"
    assert (group.message, group.failures) == ("no order <n>", 3)
    assert set(Job.objects.values_list("failure_group", "state")) == {(group.pk, "failed")}
    clock.step(7200)
    group = failing(2)
    assert group.failures == 5
    assert (group.last_seen_at - group.first_seen_at).total_seconds() >= 7200
    assert sorted(FailureHour.objects.values_list("failures", flat=True)) == [2, 3]


def test_each_attempt_counts_and_what_is_no_failure_does_not(scripted, clock) -> None:
    def snooze(job: Any) -> None:
        raise Snooze(seconds=5)

    def broken(job: Any) -> None:
        raise ValueError("no")

    scripted("test.work", broken)
    enqueue(Working)
    drain("test.work")
    assert FailureGroup.objects.get().failures == 1
    assert Job.objects.get().failure_group_id == FailureGroup.objects.get().pk
    scripted("test.work", snooze)
    clock.step(600)
    drain("test.work")
    assert FailureGroup.objects.get().failures == 1
    assert Job.objects.get().failure_group_id, "the group of the last failure stays"


def test_a_success_has_no_statement_more(scripted) -> None:
    enqueue(Working)
    with CaptureQueriesContext(connection) as captured:
        drain("test.work")
    assert not [q["sql"] for q in captured.captured_queries if "jobs_failure" in q["sql"]]


reported: list[report.Failure] = []


def keep(failure: report.Failure) -> None:
    reported.append(failure)


@pytest.fixture
def reporters(settings) -> Iterator[None]:
    settings.JOBS_ERROR_REPORTERS = [f"{__name__}.keep", "tailrace.jobs.runtime.report.to_log"]
    report.reporters.cache_clear()
    reported.clear()
    yield
    report.reporters.cache_clear()


def test_a_silenced_group_is_logged_but_not_reported(failing, clock, reporters, caplog) -> None:
    group = failing(1)
    assert [failure.silenced for failure in reported] == [False]
    silenced_until = clock.now() + timedelta(hours=1)
    FailureGroup.objects.filter(pk=group.pk).update(silenced_until=silenced_until)
    failing(1)
    assert len(reported) == 1
    clock.step(3601)
    failing(1)
    assert len(reported) == 2
    assert FailureGroup.objects.get().failures == len(caplog.records) == 3


@pytest.mark.django_db(transaction=True)
def test_a_group_that_is_locked_delays_no_settlement_for_long(failing) -> None:
    group = failing(1)
    enqueue(Working)
    with transaction.atomic():
        FailureGroup.objects.select_for_update().get(pk=group.pk)
        at_once(1, lambda _number: drain("test.work"))
    assert Job.objects.filter(state="failed", failure_group=group.pk).count() == 2
    assert FailureGroup.objects.get().failures == 1, "its count is lost"


def lose_a_worker(clock: Any) -> None:
    """Let a job fail whose worker was lost in its last attempt."""
    enqueue(Working)
    claimed("test.work")
    Job.objects.running().update(begun=True, attempt=Working.max_attempts)
    clock.step(61)
    assert rescue.rescue() == 1


def test_a_lost_worker_has_a_group(clock) -> None:
    lose_a_worker(clock)
    group = FailureGroup.objects.get()
    assert (group.error_class, group.message) == ("WorkerLost", rescue.LOST)
    assert Job.objects.get().failure_group_id == group.pk


@pytest.mark.django_db(transaction=True)
def test_a_group_that_is_locked_keeps_no_job_from_its_rescue(clock) -> None:
    lose_a_worker(clock)
    with held("SELECT 1 FROM tailrace_jobs_failuregroup FOR UPDATE"):
        lose_a_worker(clock)
    assert Job.objects.get(failure_group=None).state == "failed"
    clock.step(121)
    repaired("jobs.failed_without_group", 1)
    assert FailureGroup.objects.get().failures == 2


def test_old_failures_are_filled_in_by_the_sweep(failing, clock) -> None:
    failing(2)
    before = FailureGroup.objects.get()
    FailureGroup.objects.all().delete()
    Job.objects.update(failure_group=None)
    repaired("jobs.failed_without_group", 0)
    clock.step(121)
    repaired("jobs.failed_without_group", 2)
    after = FailureGroup.objects.get()
    assert (after.message, after.failures) == (before.message, 2)
    assert after.last_seen_at <= before.last_seen_at
    assert fill_in.group(list(Job.objects.values_list("pk", flat=True))) == 0


def test_groups_go_with_their_jobs(failing, clock, settings) -> None:
    settings.JOBS_FAILED_RETENTION_DAYS = 90
    failing(1)
    clock.step(90 * 86_400 - 60)
    prune.prune()
    assert FailureGroup.objects.count() == 1
    clock.step(120)
    assert prune.prune()["groups of failures"] == 1
    assert not FailureHour.objects.exists()
