"""One thread renews the leases of all claims of a process, with a connection only when needed."""

import threading
from collections.abc import Sequence

import pytest
from django.db import connection

from jobs.engine import lease
from jobs.engine.held import HeldClaim
from jobs.enqueue import enqueue
from jobs.handler import ClaimedJob
from jobs.maintenance import rescue
from jobs.models import Job
from tests.kit import claimed, wait_until
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db(transaction=True)


def held(jobs: Sequence[ClaimedJob]) -> HeldClaim:
    """A claim whose jobs all run."""
    claim = HeldClaim(jobs[0].handler, jobs)
    claim.begin_all()
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
    with lease.watched(held(first)):
        wait_until(beating)
        with lease.watched(held(second)):  # is due before what the thread waits for
            before = until_of(quick)
            wait_until(lambda: until_of(quick) > before + 7.5, what="a second renewal")
            assert beating() == 1
            assert rescue.rescue() == 0
    wait_until(lambda: not beating(), what="the thread to give its connection back")


def test_short_work_opens_no_connection_and_keeps_its_thread() -> None:
    for _ in range(3):
        enqueue(Working)
        with lease.watched(held(claimed("test.work", 1))):
            assert beating() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        assert cursor.fetchone() == (1,)


def test_where_no_thread_can_be_started_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    watcher = lease._Watcher()
    monkeypatch.setattr(lease, "_watcher", watcher)
    enqueue(Working)
    jobs = claimed("test.work")
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        with lease.watched(held(jobs)):
            pass
    assert not watcher._runs


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_after_a_thread_that_failed_the_next_claim_begins_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lease, "_watcher", lease._Watcher())
    monkeypatch.setattr(Working, "claim_timeout", 15)
    enqueue(Working)
    with monkeypatch.context() as broken:
        broken.setattr(lease, "POLL_SECONDS", "no number")
        with lease.watched(held(claimed("test.work", 1))):
            wait_until(lambda: not beating(), what="the end of the thread")
    id = enqueue(Working)
    assert id is not None
    with lease.watched(held(claimed("test.work", 1))):
        before = until_of(id)
        wait_until(lambda: until_of(id) > before, what="a renewal")
