"""explain and fsck cost what they look at, beside 1,000,000 finished and 100,000 pending jobs."""

from typing import Any

import pytest

from jobs.explain import explain
from jobs.fsck import kind
from jobs.fsck.check import everything
from jobs.models import Job, Queue
from tests.jobs.test_plans import _big, _history, frugal  # noqa: F401  (fixtures)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered", "test.other"])
def test_explaining_a_live_job(name: str) -> None:
    live = Job.objects.filter(handler=name, state__in=["waiting", "pending", "running"])
    for job in (live.earliest("due_at", "id"), live.latest("due_at", "id")):
        frugal(lambda id=job.pk: explain(id), pages=2500)


@pytest.mark.parametrize("name", ["test.work", "test.fair", "test.ordered"])
def test_explaining_a_job_under_limits(name: str) -> None:
    Queue.objects.filter(pk=name).update(max_running=900, rate_limit=800, tokens=800)
    job = Job.objects.pending().filter(handler=name).latest("due_at", "id")
    due = Job.objects.pending().filter(handler=name, due_at__lt=job.created_at).latest("due_at")
    # A preview of 800 jobs of a queue with lanes looks at the head of some hundred lanes.
    frugal(lambda: explain(due.pk), pages=12_000)


def test_explaining_a_finished_job() -> None:
    frugal(lambda: explain(Job.objects.filter(state="completed").earliest("id").pk), pages=200)


@pytest.mark.parametrize("table", ["jobs_job", "jobs_attempt"])
def test_a_batch_of_fsck_walks_along_the_primary_key(table: str, monkeypatch: Any) -> None:
    kinds = [each for each in everything() if isinstance(each, kind.RowKind)]
    mine = [each for each in kinds if each.table == table]
    one_batch = kind._end_of_batch

    def end(table: str, beyond: int) -> int | None:
        return None if beyond else one_batch(table, 0)

    monkeypatch.setattr(kind, "_end_of_batch", end)
    # A row costs a few probes of the primary keys, and of attempts each is a finding here.
    assert frugal(lambda: list(kind.scan(mine)), pages=20 * kind.BATCH) == 4


@pytest.mark.parametrize(
    "one",
    [each for each in everything() if not isinstance(each, kind.RowKind)],
    ids=lambda each: each.name,
)
def test_what_fsck_reads_beside_the_rows(one: kind.Kind) -> None:
    scope = kind.Scope(since=3 * 86_400)  # some 10,000 events
    frugal(lambda: list(one.find(scope)), pages=40_000)
