"""Two connections at once: neither undoes nor misses what the other has not committed yet."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from tailrace.db.query import execute, query
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.leases import renew
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job, QueueActivity
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.runtime.states import State
from tailrace.jobs.testing import Clock
from tests.kit import (
    PATIENCE,
    another_transaction,
    at_once,
    broker_length,
    claimed,
    empty_broker,
    wait_until,
)
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Ordered, Working

pytestmark = [pytest.mark.django_db(transaction=True)]


WAITING = """
SELECT EXISTS (
  SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
  WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database())
"""


def meanwhile(first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """Do `first` in a transaction that stays open; begin `second` on another connection; commit
    once that is done or waits for a lock. Returns what `second` returned."""
    answers: list[Any] = []
    pids: list[int] = []

    def other() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pids.append(cursor.fetchone()[0])
            answers.append(second())
        finally:
            connection.close()

    thread = threading.Thread(target=other, daemon=True)
    with transaction.atomic():
        first()
        thread.start()
        wait_until(lambda: pids and (not thread.is_alive() or _waits(pids[0])), what="the other")
    thread.join(PATIENCE)
    assert not thread.is_alive(), "the other one hangs"
    assert len(answers) == 1, "the other one failed; see its traceback"
    return answers[0]


def _waits(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid])
        return bool(cursor.fetchone()[0])


def completed(name: str) -> list[Verdict]:
    return [Verdict(job, State.COMPLETED) for job in claimed(name)]


def test_a_rescue_leaves_alone_what_is_being_settled(clock: Clock) -> None:
    enqueue(Working)
    verdicts = completed("test.work")
    clock.step(120)
    answer = meanwhile(lambda: settle.settle(verdicts), rescue.rescue)
    assert answer == 0
    job = Job.objects.get()
    assert (job.state, job.attempt) == ("completed", 1)
    assert not Attempt.objects.exists()


def test_a_rescue_leaves_alone_what_is_being_renewed(clock: Clock) -> None:
    enqueue(Working)
    jobs = claimed("test.work")
    clock.step(120)
    assert meanwhile(lambda: renew.renew(jobs), rescue.rescue) == 0
    assert (Job.objects.get().state, Job.objects.get().attempt) == ("running", 1)
    assert rescue.rescue() == 0


def test_what_is_being_rescued_is_not_settled(clock: Clock) -> None:
    enqueue(Working)
    verdicts = completed("test.work")
    clock.step(120)
    answer = meanwhile(rescue.rescue, lambda: settle.settle(verdicts))
    assert answer == {}
    assert Job.objects.get().state == "pending"


def test_what_is_being_cancelled_is_not_claimed() -> None:
    id = enqueue(Working)
    assert id is not None
    answer = meanwhile(lambda: cancel([id]), lambda: claimed("test.work"))
    assert answer == []
    assert Job.objects.get().state == "cancelled"


def test_a_job_being_claimed_is_not_cancelled_under_its_worker() -> None:
    id = enqueue(Working)
    assert id is not None
    meanwhile(lambda: claimed("test.work"), lambda: cancel([id]))
    job = Job.objects.get()
    assert (job.state, job.cancel_requested) == ("running", True)


def test_two_replays_at_once_are_one(clock: Clock) -> None:
    enqueue_many(Working, [{}] * 5)
    ids = list(Job.objects.values_list("id", flat=True))
    Job.objects.update(state="failed", finished_at=clock.now())
    outcomes = at_once(4, lambda _: replay(ids))
    assert sum(len(outcome.changed) for outcome in outcomes) == 5
    assert Job.objects.filter(state="pending", attempt=0).count() == 5


def test_eight_ordered_claims_hold_the_oldest_job_of_each_lane() -> None:
    enqueue_many(Ordered, [{"lane": f"lane{number % 3}"} for number in range(30)])
    taken = [job for jobs in at_once(8, lambda _: claimed("test.ordered")) for job in jobs]
    assert sorted(job.lane for job in taken) == ["lane0", "lane1", "lane2"]
    assert sorted(job.id for job in taken) == sorted(Job.objects.values_list("id", flat=True))[:3]


def test_eight_publishers_of_one_fact_record_it_once() -> None:
    def publish_once(_: int) -> int:
        return len(publish(NewEvent(Happened, {"tags": ["a"]}, source="s", source_id="1")))

    assert sum(at_once(8, publish_once)) == 1
    assert Event.objects.count() == 1
    assert sorted(Job.objects.values_list("handler", flat=True)) == [
        "test.family", "test.keyed", "test.log",
    ]  # fmt: skip


ADD_TRIGGER = """
CREATE FUNCTION races_wait_for_lock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock_shared(1);
  RETURN NULL;
END $$;
CREATE TRIGGER races_wait_for_lock BEFORE UPDATE ON tailrace_jobs_live
  FOR EACH STATEMENT EXECUTE FUNCTION races_wait_for_lock();
"""


@pytest.fixture
def claim_in_two_parts() -> Iterator[None]:
    """A claim has its snapshot, and changes rows when it gets an advisory lock."""
    execute(ADD_TRIGGER)
    yield
    execute("DROP FUNCTION races_wait_for_lock CASCADE")


def test_a_job_committed_during_a_claim_is_not_missed(claim_in_two_parts: None) -> None:
    """The queue is awake, its message is this drain, and a job comes during the claim, which does
    not see it. The drain had cleared the flag before, so that job sends a message of its own."""
    empty_broker()
    QueueActivity.objects.filter(name="test.work").update(awake=True)

    with ThreadPoolExecutor() as pool:
        with another_transaction("SELECT pg_advisory_xact_lock(1)"):
            drained = pool.submit(at_once, 1, lambda _: drain("test.work"))
            wait_until(lambda: query(WAITING)[0][0], what="the claim to wait for the lock")
            id = enqueue(Working)
        assert drained.result(PATIENCE) == [0]
    assert Job.objects.get(state="pending").id == id
    assert broker_length("test.work") == 1
    assert QueueActivity.objects.get(name="test.work").awake
