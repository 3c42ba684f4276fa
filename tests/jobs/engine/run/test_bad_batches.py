"""Bad jobs in a batch: they are found by halving, also when each call outlasts the drain's time."""

import signal
import time
from collections.abc import Callable, Sequence
from math import ceil, log2

import pytest

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import ClaimedJob, Skip, Snooze
from tailrace.jobs.models import Attempt, Job
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Batch

pytestmark = pytest.mark.django_db


@pytest.fixture
def calls(monkeypatch) -> list[list[int]]:
    """The ids of each call of the batch handler, which takes up to 64 jobs."""
    monkeypatch.setattr(Batch, "batch_size", 64)
    return []


def jobs(count: int) -> list[int]:
    enqueue_many(Batch, [{}] * count)
    return list(Job.objects.order_by("id").values_list("id", flat=True))[-count:]


def poisoned(calls: list[list[int]], bad: Sequence[int]) -> Callable[[Sequence[ClaimedJob]], None]:
    def work(batch: Sequence[ClaimedJob]) -> None:
        calls.append([job.id for job in batch])
        if set(calls[-1]) & set(bad):
            raise ValueError("poison")

    return work


def most_calls(count: int) -> int:
    """What one bad job costs at most, beside the call that first failed."""
    return 2 * ceil(log2(count))


@pytest.mark.parametrize("count", [2, 3, 10, 63, 64])
@pytest.mark.parametrize("place", [0.0, 0.5, 0.99], ids=["first", "middle", "last"])
def test_one_bad_job_costs_a_few_calls(scripted, calls, count: int, place: float) -> None:
    ids = jobs(count)
    bad = ids[int(count * place)]
    scripted("test.batch", poisoned(calls, [bad]))
    run_and_settle(claimed("test.batch"))
    assert len(calls) <= 1 + most_calls(count)
    assert calls.count([bad]) == 1
    sound = Job.objects.exclude(pk=bad).values_list("state", "attempt", "claim_no")
    assert set(sound) <= {("completed", 1, 1)}
    assert (Job.objects.get(pk=bad).state, Job.objects.get(pk=bad).attempt) == ("pending", 1)
    assert Attempt.objects.get().message == "poison"


def test_a_drain_without_time_halves_and_continues(scripted, calls, settings) -> None:
    """As when each call with the bad job takes longer than a drain."""
    settings.JOBS_DRAIN_SECONDS = 0
    ids = jobs(64)
    bad = ids[21]
    scripted("test.batch", poisoned(calls, [bad]))
    drains = 0
    while Job.objects.pending().filter(attempt=0).exists():
        drains += 1
        assert drains <= 1 + most_calls(64)
        drain("test.batch")
        assert len(calls) == drains, "each drain makes one call"
    assert calls.count([bad]) == 1
    others = Job.objects.exclude(pk=bad).values_list("state", "attempt", "suspect_group")
    assert set(others) == {("completed", 1, None)}
    assert [row.job_id for row in Attempt.objects.all()] == [bad]


def test_a_known_bad_job_is_called_alone_until_it_fails(scripted, calls, settings, clock) -> None:
    settings.JOBS_DRAIN_SECONDS = 0
    bad = jobs(64)[40]
    scripted("test.batch", poisoned(calls, [bad]))
    for _ in range(1 + most_calls(64)):
        drain("test.batch")
    for _ in range(Batch.max_attempts):
        clock.step(100)
        jobs(30)
        drain("test.batch")
        drain("test.batch")
    assert len(calls) <= 1 + most_calls(64) + 2 * Batch.max_attempts
    assert calls.count([bad]) == Batch.max_attempts
    job = Job.objects.get(pk=bad)
    assert (job.state, job.attempt) == ("failed", Batch.max_attempts)
    assert not Job.objects.exclude(pk=bad).exclude(state="completed").exists()
    assert set(Job.objects.exclude(pk=bad).values_list("attempt", flat=True)) == {1}
    assert set(Attempt.objects.values_list("job_id", flat=True)) == {bad}


def test_a_batch_that_hangs_is_halved_over_drains(scripted, calls, settings, monkeypatch) -> None:
    monkeypatch.setattr(Batch, "time_limit", 300)
    settings.JOBS_DRAIN_SECONDS = 0
    bad = jobs(16)[3]

    def work(batch: Sequence[ClaimedJob]) -> None:
        calls.append([job.id for job in batch])
        if bad in calls[-1]:
            signal.setitimer(signal.ITIMER_REAL, 0.01)  # the limit, soon
            time.sleep(300)

    scripted("test.batch", work)
    for _ in range(1 + most_calls(16)):
        drain("test.batch")
    assert len(calls) <= 1 + most_calls(16)
    assert set(Job.objects.exclude(pk=bad).values_list("state", "attempt")) == {("completed", 1)}
    assert Attempt.objects.get().job_id == bad
    assert Job.objects.get(pk=bad).error == "took longer than its time limit of 300 s"


def test_new_jobs_are_not_called_with_suspects(scripted, calls, settings) -> None:
    settings.JOBS_DRAIN_SECONDS = 0
    suspects = jobs(8)
    scripted("test.batch", poisoned(calls, suspects[:1]))
    drain("test.batch")
    new = jobs(8)
    while Job.objects.pending().filter(attempt=0).exists():
        drain("test.batch")
    assert new in calls
    assert all(not set(call) & set(new) or call == new for call in calls)


def test_suspects_do_not_starve_behind_new_batches(scripted, calls, settings) -> None:
    settings.JOBS_DRAIN_SECONDS = 0
    suspects = jobs(8)
    scripted("test.batch", poisoned(calls, suspects[7:]))
    for _ in range(1 + most_calls(8)):
        drain("test.batch")
        jobs(5)
    assert calls.count(suspects[7:]) == 1
    assert not Job.objects.pending().filter(pk__in=suspects, attempt=0).exists()


def test_two_bad_jobs_are_both_found(scripted, calls) -> None:
    ids = jobs(64)
    bad = [ids[5], ids[50]]
    scripted("test.batch", poisoned(calls, bad))
    run_and_settle(claimed("test.batch"))
    assert set(Job.objects.pending().values_list("id", flat=True)) == set(bad)
    assert len(calls) <= 1 + 2 * most_calls(64)


def test_an_outage_marks_no_job(scripted, calls, clock) -> None:
    """When all fail the cause is no job: with the next attempt they are one batch again."""
    ids = jobs(8)
    scripted("test.batch", poisoned(calls, ids))
    run_and_settle(claimed("test.batch"))
    assert set(Job.objects.values_list("state", "attempt", "suspect_group")) == {
        ("pending", 1, None)
    }
    clock.step(100)
    calls.clear()
    scripted("test.batch", lambda batch: calls.append([job.id for job in batch]))
    drain("test.batch")
    assert [sorted(call) for call in calls] == [ids]


@pytest.mark.parametrize("outcome", [Skip("nothing"), Snooze("later", seconds=60)])
def test_an_outcome_that_a_batch_returns_is_its_jobs(scripted, calls, outcome) -> None:
    ids = jobs(8)

    def work(batch: Sequence[ClaimedJob]) -> Skip | Snooze | None:
        return outcome if any(job.id == ids[2] for job in batch) else None

    scripted("test.batch", work)
    run_and_settle(claimed("test.batch"))
    expected = "skipped" if isinstance(outcome, Skip) else "pending"
    assert Job.objects.get(pk=ids[2]).state == expected
    assert set(Job.objects.exclude(pk=ids[2]).values_list("state", flat=True)) == {"completed"}
