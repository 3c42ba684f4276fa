"""The cost of explain and fsck, with 1,000,000 finished and 100,000 pending jobs."""

from typing import Any

import pytest

from tailrace.jobs.maintenance.invariant import Invariant, all_invariants
from tailrace.jobs.maintenance.sweeping import row_invariant
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tailrace.jobs.platform.invariants.events import EventHasJobs
from tests.jobs.engine.plans.test_plans import _big, _history, frugal  # noqa: F401  (fixtures)
from tests.kit import change_queue

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered", "test.other"])
def test_explaining_a_live_job(name: str) -> None:
    live = Job.objects.filter(handler=name, state__in=["waiting", "pending", "running"])
    for job in (live.earliest("due_at", "id"), live.latest("due_at", "id")):
        frugal(lambda id=job.pk: explain(id), pages=2500)


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered"])
def test_explaining_a_job_under_limits(name: str) -> None:
    change_queue(name, max_running=900, rate_limit=800, tokens=800)
    job = Job.objects.pending().filter(handler=name).latest("due_at", "id")
    due = Job.objects.pending().filter(handler=name, due_at__lt=job.created_at).latest("due_at")
    # A preview of 800 jobs of a queue with lanes looks at the head of some hundred lanes.
    frugal(lambda: explain(due.pk), pages=12_000)


def test_explaining_a_finished_job() -> None:
    frugal(lambda: explain(Job.objects.filter(state="completed").earliest("id").pk), pages=200)


@pytest.mark.parametrize("table", ["tailrace_jobs_job", "tailrace_jobs_attempt"])
def test_a_batch_of_fsck_walks_along_the_primary_key(table: str, monkeypatch: Any) -> None:
    of_table = [
        rule
        for rule in all_invariants()
        if isinstance(rule, row_invariant.RowInvariant) and rule.table == table
    ]
    end_of_batch = row_invariant._end_of_batch

    def first_batch(table: str, start: int) -> int | None:
        return None if start else end_of_batch(table, 0)

    monkeypatch.setattr(row_invariant, "_end_of_batch", first_batch)
    # A row costs a few probes of the primary keys, one for each day of the history; of attempts,
    # each is a finding here.
    assert frugal(lambda: list(row_invariant.scan(of_table)), pages=200 * row_invariant.BATCH) == 4


@pytest.mark.parametrize(
    "other",
    [
        rule
        for rule in all_invariants()
        if rule.every is None and not isinstance(rule, row_invariant.RowInvariant)
    ],
    ids=lambda other: other.name,
)
def test_checks_of_more_than_rows_read_few_pages(other: Invariant) -> None:
    if isinstance(other, EventHasJobs):
        other.since = 3 * 86_400  # some 10,000 events
    frugal(lambda: list(other.find()), pages=130_000)  # 2,000 events, each sought in 27 days
