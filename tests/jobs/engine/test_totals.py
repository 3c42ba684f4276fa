"""What all processes count adds up in the database, once each."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, transaction

from tailrace.db.query import query
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.leases.give_back import give_back_waiting
from tailrace.jobs.engine.leases.held import HeldClaim
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job, Total
from tailrace.jobs.runtime.states import State
from tests.kit import claimed, empty_broker, held, wait_until, worker
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Batch, Working


@pytest.fixture(autouse=True)
def _nothing_pending() -> Iterator[None]:
    totals._pending.take()
    yield
    totals._pending.take()


def numbers(metric: str, name: str) -> list[float]:
    return next(
        iter(Total.objects.filter(metric=metric, name=name).values_list("numbers", flat=True)), []
    )


def outcomes(name: str) -> dict[str, int]:
    counts = numbers(totals.SETTLED, name)
    return {each: int(n) for each, n in zip(totals.OUTCOMES, counts, strict=False) if n}


@pytest.mark.django_db
def test_a_drain_writes_how_its_claims_ended_how_long_they_waited_and_ran() -> None:
    for do in ("nothing", "nothing", "skip", "permanent", "retry", "snooze", "cancel"):
        enqueue(Working, {"do": do, "seconds": 60})
    Job.objects.update(due_at=Job.objects.first().due_at - timedelta(seconds=45))
    drain("test.work")
    ended = {"completed": 2, "skipped": 1, "failed": 1, "retried": 1, "snoozed": 1, "cancelled": 1}
    assert outcomes("test.work") == ended
    *waited, waited_seconds = numbers(totals.WAIT, "test.work")
    assert waited[totals.BUCKETS.index(60.0)] == sum(waited) == 7
    assert waited_seconds > 7 * 45
    *ran, ran_seconds = numbers(totals.RUN, "test.work")
    assert sum(ran) == 7
    assert 0 < ran_seconds < 60


@pytest.mark.django_db(transaction=True)
def test_drains_that_follow_each_other_write_once_and_a_thread_writes_the_rest(
    settings, monkeypatch
) -> None:
    settings.JOBS_WAKE = "thread"
    monkeypatch.setattr(totals, "PACE_SECONDS", 3600)
    monkeypatch.setattr(totals, "LATE_SECONDS", 3600)
    totals.write()
    enqueue(Working)
    drain("test.work")
    assert not outcomes("test.work")
    monkeypatch.setattr(totals, "LATE_SECONDS", 0)
    wait_until(lambda: outcomes("test.work") == {"completed": 1}, 10)


@pytest.mark.django_db
def test_each_job_of_a_batch_ran_for_as_long_as_its_call() -> None:
    enqueue_many(Batch, [{}] * 4)
    drain("test.batch")
    assert outcomes("test.batch") == {"completed": 4}
    assert sum(numbers(totals.RUN, "test.batch")[:-1]) == 4


@pytest.mark.django_db(transaction=True)
def test_only_events_that_are_committed_are_counted() -> None:
    publish([NewEvent(Happened, {"who": "a"}), NewEvent(Happened, {"who": "b"})])
    with transaction.atomic():
        publish(NewEvent(Happened, {"who": "c"}))
        transaction.set_rollback(True)
    totals.write()
    assert numbers(totals.EVENTS, "test.happened") == [2]


@pytest.mark.django_db(transaction=True)
def test_what_could_not_be_written_is_written_the_next_time() -> None:
    totals.add({(totals.WAKE_UPS, "test.work"): [1]})
    totals.write()
    totals.add({(totals.WAKE_UPS, "test.work"): [2]})
    with held("SELECT 1 FROM tailrace_jobs_total FOR UPDATE"), transaction.atomic():
        query("SELECT set_config('lock_timeout', '50ms', true)")
        with pytest.raises(OperationalError), transaction.atomic():
            totals.write()
    totals.write()
    assert numbers(totals.WAKE_UPS, "test.work") == [3]


def test_a_forked_child_writes_nothing_of_its_parent() -> None:
    totals._pending.add({(totals.WAKE_UPS, "test.work"): [1]})
    reading, writing = os.pipe()
    if not os.fork():
        os.write(writing, str(len(totals._pending.take())).encode())
        os._exit(0)
    os.wait()
    assert os.read(reading, 10) == b"0"
    assert len(totals._pending.take()) == 1


@pytest.mark.django_db
def test_a_lost_worker_is_an_outcome(clock, django_capture_on_commit_callbacks) -> None:
    enqueue(Working)
    claimed("test.work")
    clock.step(61)
    with django_capture_on_commit_callbacks(execute=True):
        rescue.rescue()
    totals.write()
    assert outcomes("test.work") == {"lost": 1}


@pytest.mark.django_db
def test_jobs_that_are_given_back_before_their_call_are_counted() -> None:
    enqueue_many(Working, [{}] * 2)
    jobs = claimed("test.work")
    give_back_waiting(HeldClaim(jobs[0].handler, jobs))
    totals.write()
    assert outcomes("test.work") == {"handed_back": 2}
    assert not numbers(totals.WAIT, "test.work")


@pytest.mark.django_db(transaction=True)
def test_a_slow_call_does_not_keep_what_was_counted_before_it(scripted, settings) -> None:
    settings.JOBS_WAKE = "thread"
    _first, last = enqueue(Working), enqueue(Working)

    def work(job: ClaimedJob) -> None:
        if job.id == last:
            wait_until(lambda: outcomes("test.work") == {"completed": 1})

    scripted("test.work", work)
    drain("test.work")
    assert set(Job.objects.values_list("state", flat=True)) == {State.COMPLETED}


@pytest.mark.django_db
def test_numbers_of_more_buckets_are_added_to_those_of_fewer() -> None:
    Total.objects.create(metric=totals.WAIT, name="test.work", numbers=[1, 1])
    totals.add({(totals.WAIT, "test.work"): [1, 2, 3]})
    totals.write()
    assert numbers(totals.WAIT, "test.work") == [2, 3, 3]


@pytest.mark.django_db
def test_a_crash_empties_the_table_and_nothing_waits_for_the_disk() -> None:
    assert query("SELECT relpersistence FROM pg_class WHERE relname = 'tailrace_jobs_total'") == [
        ("u",)
    ]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_workers_with_children_count_each_job_once(process_env, tmp_path: Path) -> None:
    empty_broker()
    done = Job.objects.filter(state=State.COMPLETED)
    log = tmp_path / "a.log", tmp_path / "b.log"
    with (
        worker(process_env, ["test.work"], log=log[0], concurrency=2) as one,
        worker(process_env, ["test.work"], log=log[1], concurrency=2) as two,
    ):
        for _ in range(4):
            enqueue_many(Working, [{}] * 25)
        wait_until(lambda: done.count() == 100)
        assert (one.stop(), two.stop()) == (0, 0)
    totals.write()  # the wake-ups of this process
    assert outcomes("test.work").get("completed") == 100
    assert sum(numbers(totals.RUN, "test.work")[:-1]) == 100
    assert numbers(totals.WAKE_UPS, "test.work")[0] >= 1
