"""A flow is pruned with all of its jobs, when the last of them is past its retention."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.engine.maintenance.pruning import history, prune
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.models import Attempt, Dependency, Flow, Job
from tests.jobs.flows.kit import FAILS, states
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 86_400


@pytest.fixture(autouse=True)
def _retention(settings) -> None:
    settings.JOBS_RETENTION_DAYS = 3
    settings.JOBS_FAILED_RETENTION_DAYS = 9


def pass_days(clock, days: int) -> None:
    for _day in range(days):
        clock.step(DAY)
        history.move()
        prune.prune()


def test_a_flow_that_runs_longer_than_its_retention_loses_nothing(clock, run_jobs) -> None:
    flow = NewFlow("long")
    early = flow.add(Working, name="early")
    late = flow.add(Working, delay=6 * DAY, name="late")
    flow.add(Other, after=[early, late], name="callback")
    flow.enqueue()
    run_jobs()
    pass_days(clock, 5)
    assert states(flow) == {"early": "completed", "late": "pending", "callback": "waiting"}
    clock.step(DAY + 60)
    run_jobs()
    assert set(states(flow).values()) == {"completed"}
    pass_days(clock, 2)
    assert len(states(flow)) == 3
    pass_days(clock, 3)
    assert states(flow) == {}
    assert not Flow.objects.exists()
    assert not Dependency.objects.exists()


def test_a_flow_with_a_failed_job_stays_as_long_as_failed_jobs(clock, run_jobs) -> None:
    flow = NewFlow("failed")
    flow.add(Other, after_end=[flow.add(Working), flow.add(Working, FAILS)])
    flow.enqueue()
    run_jobs()
    pass_days(clock, 7)
    assert sorted(states(flow).values()) == ["completed", "completed", "failed"]
    pass_days(clock, 3)
    assert states(flow) == {}
    assert not Job.objects.exists()
    assert not Attempt.objects.exists()


def test_a_statement_deletes_a_bounded_number_of_jobs(clock, run_jobs, monkeypatch) -> None:
    monkeypatch.setattr(prune, "JOBS_OF_FLOWS", 4)
    for count in (2, 2, 1, 9, 1):
        flow = NewFlow(f"of {count}")
        flow.group(Working, [None] * count)
        flow.enqueue()
    run_jobs()
    clock.step(4 * DAY)
    with CaptureQueriesContext(connection) as statements:
        prune.prune()
    deletes = [each for each in statements if "DELETE FROM tailrace_jobs_flow" in each["sql"]]
    assert len(deletes) == 4  # of 4, 1, 9 and 1 jobs
    assert not Flow.objects.exists()
    assert not Job.objects.exists()


def test_other_flows_stay(clock, run_jobs) -> None:
    old, new = NewFlow("old"), NewFlow("new")
    old.add(Working)
    old.enqueue()
    run_jobs()
    pass_days(clock, 3)
    new.add(Working)
    new.enqueue()
    run_jobs()
    pass_days(clock, 1)
    assert (states(old), states(new)) == ({}, {"work": "completed"})
