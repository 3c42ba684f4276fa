"""One thread renews the leases of all claims of a process, with a connection only when needed."""

import threading
from collections.abc import Sequence

import pytest
from django.db import connection, transaction

from tailrace.db.connections import atomic, engine
from tailrace.db.query import execute, query
from tailrace.jobs.engine.leases import lease
from tailrace.jobs.engine.leases.give_back import give_back_running
from tailrace.jobs.engine.leases.held import EndedJobs, HeldClaim
from tailrace.jobs.engine.leases.renew import _RENEW_ONE, renew
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.engine.run.verdict import completed
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job, Pulse
from tailrace.jobs.runtime import thread_failures
from tests.kit import claimed, held, wait_until
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db(transaction=True)


def claim_of(jobs: Sequence[ClaimedJob]) -> HeldClaim:
    """A claim whose jobs all run."""
    claim = HeldClaim(jobs[0].handler, jobs)
    claim.begin_group(list)
    return claim


def beating() -> int:
    return sum(thread.name == "lease" for thread in threading.enumerate())


def until_of(id: int) -> float:
    moment = Job.objects.get(pk=id).lease_until
    assert moment is not None
    return moment.timestamp()


def test_one_thread_renews_two_claims_and_ends_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Working, "claim_timeout", 180)
    monkeypatch.setattr(Other, "claim_timeout", 15)
    enqueue(Working)
    quick = enqueue(Other)
    assert quick is not None
    first, second = claimed("test.work"), claimed("test.other")
    with lease.watched(claim_of(first)):
        wait_until(beating)
        with lease.watched(claim_of(second)):  # is due before what the thread waits for
            before = until_of(quick)
            wait_until(lambda: until_of(quick) > before + 7.5, what="a second renewal")
            assert beating() == 1
            assert rescue.rescue() == 0
    wait_until(lambda: not beating(), what="the thread to give its connection back")


@pytest.mark.parametrize("number", [1, 3])
def test_a_renewal_writes_to_no_index(number: int) -> None:
    enqueue_many(Working, [{}] * number)
    jobs = claimed("test.work")
    with engine(), atomic():
        assert renew(jobs) == number
        counted = query(
            """SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables
               WHERE relname = 'tailrace_jobs_live'"""
        )
    assert counted == [(number, number)]


def test_a_renewal_writes_little() -> None:
    enqueue(Working)
    (job,) = claimed("test.work")
    renewal = f"EXPLAIN (ANALYZE, WAL, FORMAT JSON) {_RENEW_ONE}"
    renew([job])
    plans = []
    for _ in range(5):
        [(explained,)] = query(
            renewal, wait="1s", lease=60, id=job.id, claim_no=job.claim_no, worker=job.worker
        )
        plans.append(explained[0]["Plan"])
    # Cleaning a page of old rows, and images of pages after a checkpoint, are not its own.
    least = min(plans, key=lambda plan: (plan["WAL Records"], plan["WAL Bytes"]))
    assert least["WAL Records"] == 1
    assert least["WAL Bytes"] < 110  # and its commit is 34


@pytest.mark.parametrize("number", [1, 2])
def test_a_renewal_passes_over_a_row_that_somebody_holds(number: int) -> None:
    enqueue_many(Working, [{}] * number)
    jobs = claimed("test.work")
    with held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", jobs[0].id):
        assert renew(jobs) == number - 1
    assert renew(jobs) == number


def test_a_claim_that_is_no_longer_ours_is_not_renewed() -> None:
    enqueue(Working)
    (job,) = claimed("test.work")
    for change in ("worker = 'another'", "claim_no = 2", "state = 'completed'"):
        with atomic():
            execute(f"UPDATE tailrace_jobs_job SET {change}")
            assert renew([job]) == 0
            transaction.set_rollback(True)
    assert renew([job]) == 1


def sessions() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def test_short_work_opens_no_connection_and_keeps_its_thread() -> None:
    before = sessions()  # of tests before this one some may end meanwhile
    for _ in range(3):
        enqueue(Working)
        with lease.watched(claim_of(claimed("test.work", 1))):
            assert beating() == 1
    assert sessions() <= before


def test_where_no_thread_can_be_started_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    watcher = lease._Watcher()
    monkeypatch.setattr(lease, "_watcher", watcher)
    enqueue(Working)
    jobs = claimed("test.work")
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        with lease.watched(claim_of(jobs)):
            pass
    assert not watcher._runs


def test_after_an_error_the_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_watcher", lease._Watcher())
    monkeypatch.setattr(Working, "claim_timeout", 15)
    monkeypatch.setattr(thread_failures, "_next_at", {})
    enqueue(Working)
    with monkeypatch.context() as broken:
        broken.setattr(lease, "POLL_SECONDS", "no number")
        with lease.watched(claim_of(claimed("test.work", 1))):
            wait_until(lambda: Pulse.objects.filter(facts__thread="lease").exists())
    id = enqueue(Working)
    assert id is not None
    with lease.watched(claim_of(claimed("test.work", 1))):
        before = until_of(id)
        wait_until(lambda: until_of(id) > before, what="a renewal")


def test_an_ended_call_is_not_given_back() -> None:
    """A worker whose shutdown took too long gave it back, and its effect happened twice."""
    enqueue_many(Working, [{}] * 2)
    ended = EndedJobs()
    claim = HeldClaim(Working(), claimed("test.work"), ended)
    for job in claim.begin_group(list)[:1]:
        ended.add([completed(job, None)])
    give_back_running(claim)
    assert set(Job.objects.values_list("state", "attempt")) == {("completed", 1), ("pending", 0)}
