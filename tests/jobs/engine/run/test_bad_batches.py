"""Bad jobs in a batch: they are found by splitting, also when each call outlasts the drain's time,
and the other jobs do not wait for long."""

import signal
import time
from collections.abc import Callable, Sequence
from math import ceil, log2
from types import SimpleNamespace

import pytest

from tailrace.jobs.engine import drain as drain_module
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.leases import held
from tailrace.jobs.engine.run import batch, handler_call
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import ClaimedJob, Skip, Snooze, TimeLimitExceeded, handler
from tailrace.jobs.models import Attempt, Job
from tests.kit import broker_length, claimed, empty_broker, run_and_settle
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


def test_a_drain_without_time_splits_and_continues(scripted, calls, settings) -> None:
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


def test_a_batch_that_hangs_is_split_over_drains(scripted, calls, settings, monkeypatch) -> None:
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


class Calls:
    """Calls whose time is simulated: `now` is what `time.monotonic()` adds to the real time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seconds: list[float] = []
        self.ids: list[list[int]] = []
        self.done_at: dict[int, float] = {}

    def take(self, jobs: Sequence[ClaimedJob], seconds: float, *, fails: bool) -> None:
        """End after so many seconds, or at the time limit of the call."""
        limit, _interval = signal.getitimer(signal.ITIMER_REAL)
        self.ids.append([job.id for job in jobs])
        self.seconds.append(min(seconds, limit))
        self.now += self.seconds[-1]
        if seconds > limit:
            raise TimeLimitExceeded
        if fails:
            raise ValueError("late")
        self.done_at.update((job.id, self.now) for job in jobs)


@pytest.fixture
def simulated(monkeypatch) -> Calls:
    calls = Calls()
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + calls.now)
    for module in (batch, drain_module, handler_call, held, handler):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(Batch, "batch_size", 100)
    return calls


def drain_until_done(bad: int) -> None:
    while Job.objects.pending().exclude(pk=bad).exists():
        drain("test.batch")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seconds", [1.1, 60.0, 600.0])
@pytest.mark.parametrize(("count", "place"), [(20, 0), (20, 13), (20, 19), (100, 42)])
def test_sound_jobs_wait_at_most_twice_as_long_as_the_call_that_fails(
    scripted, simulated, seconds: float, count: int, place: int
) -> None:
    """In one process."""
    ids = jobs(count)
    bad = ids[place]

    def work(batch: Sequence[ClaimedJob]) -> None:
        is_bad = any(job.id == bad for job in batch)
        simulated.take(batch, seconds if is_bad else 0.0, fails=is_bad)

    scripted("test.batch", work)
    drain_until_done(bad)
    assert set(simulated.done_at) == {*ids} - {bad}
    assert max(simulated.done_at.values()) <= 2 * seconds
    drain("test.batch")
    assert simulated.seconds[-1] == pytest.approx(min(seconds, 600.0), rel=0.01)
    assert [attempt.job_id for attempt in Attempt.objects.all()] == [bad], "with all of its time"
    assert set(Job.objects.exclude(pk=bad).values_list("state", "attempt")) == {("completed", 1)}


@pytest.mark.django_db(transaction=True)
def test_parts_that_may_be_slow_run_in_several_processes_at_once(scripted, simulated) -> None:
    ids = jobs(16)
    others = []

    def work(batch: Sequence[ClaimedJob]) -> None:
        if len(batch) < 16:
            rest = Job.objects.exclude(pk__in=[job.id for job in batch])
            others.append((set(rest.values_list("state", flat=True)), broker_length("test.batch")))
        simulated.take(batch, 60, fails=ids[3] in [job.id for job in batch])

    scripted("test.batch", work)
    drain("test.batch")
    empty_broker()
    drain("test.batch")
    assert simulated.ids == [ids, ids[:4]]
    assert others == [({"pending"}, 1)], "another process can claim them during the call"


@pytest.mark.django_db(transaction=True)
def test_a_limit_that_is_too_short_for_sound_parts_is_lifted(scripted, simulated) -> None:
    """As where each call takes the same time, however many jobs it has."""
    bad, *sound = jobs(20)

    def work(batch: Sequence[ClaimedJob]) -> None:
        simulated.take(batch, 60, fails=any(job.id == bad for job in batch))

    scripted("test.batch", work)
    drain_until_done(bad)
    assert set(simulated.done_at) == {*sound}
    assert simulated.now <= 60 * (2 + most_calls(20))
    limited = [seconds for seconds in simulated.seconds if seconds < 60]
    assert limited == pytest.approx([30, 30], rel=0.01)


def test_a_batch_that_fails_early_has_no_shortened_limits(scripted, simulated) -> None:
    ids = jobs(20)
    bad = ids[7]

    def work(batch: Sequence[ClaimedJob]) -> None:
        is_bad = any(job.id == bad for job in batch)
        simulated.take(batch, 0.01 if is_bad else 100, fails=is_bad)

    scripted("test.batch", work)
    drain_until_done(bad)
    assert set(simulated.seconds) == {0.01, 100}


def test_only_the_job_that_the_handler_blames_fails(scripted, calls) -> None:
    ids = jobs(20)

    def work(batch: Sequence[ClaimedJob]) -> None:
        calls.append([job.id for job in batch])
        for job in batch:
            with job.blamed():
                if job.id in (ids[4], ids[9]):
                    raise ValueError(f"poison {job.id}")

    scripted("test.batch", work)
    run_and_settle(claimed("test.batch"))
    bad = {ids[4], ids[9]}
    assert calls == [ids, ids[:4] + ids[5:], [id for id in ids if id not in bad]]
    assert {(row.job_id, row.message) for row in Attempt.objects.all()} == {
        (id, f"poison {id}") for id in bad
    }
    assert set(Job.objects.exclude(pk__in=bad).values_list("state", "attempt")) == {
        ("completed", 1)
    }


def test_an_error_that_the_handler_caught_blames_nobody(scripted, calls) -> None:
    ids = jobs(8)

    def work(batch: Sequence[ClaimedJob]) -> None:
        calls.append([job.id for job in batch])
        try:
            with batch[0].blamed():
                raise ValueError("caught")
        except ValueError:
            pass
        if ids[7] in calls[-1]:
            raise RuntimeError("poison")

    scripted("test.batch", work)
    run_and_settle(claimed("test.batch"))
    assert [row.job_id for row in Attempt.objects.all()] == [ids[7]]


@pytest.mark.django_db(transaction=True)
def test_a_blamed_job_that_hangs_is_called_alone_from_then_on(
    scripted, simulated, clock, settings
) -> None:
    settings.JOBS_DRAIN_SECONDS = 0
    bad, *sound = jobs(20)

    def work(batch: Sequence[ClaimedJob]) -> None:
        for job in batch:
            with job.blamed():
                simulated.take(
                    batch if job.id == bad else [job], 9e9 * (job.id == bad), fails=False
                )

    scripted("test.batch", work)
    drain("test.batch")
    assert (Job.objects.get(pk=bad).state, Attempt.objects.get().job_id) == ("pending", bad)
    drain("test.batch")
    assert set(simulated.done_at) == {*sound}
    assert simulated.now == pytest.approx(600, rel=0.01)
    clock.step(100)
    new = jobs(5)
    simulated.ids.clear()
    drain("test.batch")
    assert simulated.ids == [[bad]]
    assert set(Job.objects.filter(pk__in=new).values_list("state", flat=True)) == {"pending"}


@pytest.mark.django_db(transaction=True)
def test_a_job_that_was_only_the_last_at_the_time_limit_is_not_blamed(scripted, simulated) -> None:
    ids = jobs(8)

    def work(batch: Sequence[ClaimedJob]) -> None:
        for job in batch:
            with job.blamed():
                left, _interval = signal.getitimer(signal.ITIMER_REAL)
                signal.setitimer(signal.ITIMER_REAL, max(left - 100, 0.001))
                simulated.take([job], 100, fails=False)

    scripted("test.batch", work)
    drain_until_done(0)
    assert set(simulated.done_at) == {*ids}
    assert not Attempt.objects.exists()
