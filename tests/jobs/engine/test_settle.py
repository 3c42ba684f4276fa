"""Only a claim's owner settles, once, whatever happens to its connection."""

import pytest
from django.db import OperationalError, connection, transaction

from tailrace.db.connections import engine
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob, Retry
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime.states import State
from tests.kit import at_once, claimed, held, run_and_settle, verdicts_on, wait_until
from tests.sandbox.handlers import Working, cut_own_connection

pytestmark = pytest.mark.django_db


def completed(jobs: list[ClaimedJob]) -> list[Verdict]:
    return [Verdict(job, State.COMPLETED) for job in jobs]


def test_the_same_verdicts_twice_settle_once() -> None:
    enqueue_many(Working, [{}] * 5)
    verdicts = completed(claimed("test.work"))
    assert len(settle.settle(verdicts)) == 5
    assert settle.settle(verdicts) == {}


def test_only_failed_snoozed_and_lost_claims_are_attempts(scripted, clock) -> None:
    for do in ("nothing", "skip", "cancel", "raise", "permanent", "snooze"):
        enqueue(Working, {"do": do, "seconds": 5})
    run_and_settle(claimed("test.work"))
    outcomes = Attempt.objects.order_by("job_id").values_list("outcome", flat=True)
    assert list(outcomes) == ["retried", "failed", "snoozed"]


def test_a_retry_whose_unique_key_was_taken_is_merged(scripted, run_jobs) -> None:
    newer = []

    def work(job: ClaimedJob) -> None:
        newer.append(enqueue(Working, unique_key="k", delay=60))
        raise Retry("again")

    scripted("test.work", work)
    older = enqueue(Working, unique_key="k")
    run_and_settle(claimed("test.work"))
    job = Job.objects.get(pk=older)
    assert (job.state, job.error) == ("skipped", f"merged into job {newer[0]}")
    assert Job.objects.get(pk=newer[0]).state == "pending"


def test_a_retry_of_a_job_that_is_to_be_cancelled_is_cancelled(scripted) -> None:
    def work(job: ClaimedJob) -> None:
        Job.objects.filter(pk=job.id).update(cancel_requested=True)
        raise Retry("again")

    scripted("test.work", work)
    enqueue(Working)
    run_and_settle(claimed("test.work"))
    job = Job.objects.get()
    assert (job.state, job.error) == ("cancelled", "cancelled while running")
    assert job.finished_at is not None


@pytest.mark.django_db(transaction=True)
def test_a_connection_cut_before_settling_settles_once() -> None:
    enqueue_many(Working, [{}] * 8)
    jobs = claimed("test.work")
    verdicts = list(verdicts_on(jobs))
    with pytest.raises(Exception, match="terminating connection"):
        cut_own_connection()
    assert set(settle.settle(verdicts).values()) == {"completed"}
    assert set(Job.objects.values_list("attempt", "claim_no", "state")) == {(1, 1, "completed")}


def settled_in_thread(verdicts: list[Verdict]) -> dict[int, str]:
    """Settle as a drain does: the statements of the engine's session have limits."""

    def work(_number: int) -> dict[int, str]:
        with engine():
            return settle.settle(verdicts)

    return at_once(1, work)[0]


@pytest.mark.django_db(transaction=True)
def test_a_unique_key_that_is_not_committed_delays_no_other_verdict(monkeypatch) -> None:
    monkeypatch.setattr(settle, "TRIES", 1)
    enqueue(Working, {"do": "retry"}, unique_key="k")
    enqueue_many(Working, [{}] * 5)
    jobs = claimed("test.work")
    verdicts = list(verdicts_on(jobs))
    with transaction.atomic():
        enqueue(Working, unique_key="k")  # an open transaction of another publisher
        with pytest.raises(OperationalError, match="lock timeout"):
            settled_in_thread(verdicts)
    states = Job.objects.filter(pk__in=[job.id for job in jobs]).values_list("id", "state")
    assert dict(states) == {job.id: "completed" for job in jobs} | {jobs[0].id: "running"}
    assert settled_in_thread(verdicts) == {jobs[0].id: "skipped"}


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_locked_delays_no_other_verdict(monkeypatch) -> None:
    monkeypatch.setattr(settle, "TRIES", 1)
    enqueue_many(Working, [{}] * 7)
    verdicts = completed(claimed("test.work"))
    locked = verdicts[3].job.id
    with (
        held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", locked),
        pytest.raises(OperationalError, match="lock timeout"),
    ):
        settled_in_thread(verdicts)
    assert Job.objects.filter(state="completed").count() == 6
    assert settled_in_thread(verdicts) == {locked: "completed"}


@pytest.mark.django_db(transaction=True)
def test_a_drain_survives_a_connection_cut_within_a_batch(scripted) -> None:
    done: list[int] = []

    def work(job: ClaimedJob) -> None:
        done.append(job.id)
        if len(done) == 4:
            cut_own_connection()

    scripted("test.work", work)
    enqueue_many(Working, [{}] * 10)
    drain("test.work")
    assert len(done) == 10 == len(set(done))
    assert Job.objects.filter(state="completed", claim_no=1, attempt=1).count() == 9
    assert Job.objects.filter(state="pending", claim_no=1, attempt=1).count() == 1
    assert Attempt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_settlers_of_one_claim_settle_it_once() -> None:
    enqueue_many(Working, [{}] * 10)
    verdicts = completed(claimed("test.work"))
    settled = at_once(4, lambda _: settle.settle(verdicts))
    assert sum(map(len, settled)) == 10


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_renewal_keeps_a_job_that_outlasts_its_lease(scripted, monkeypatch) -> None:
    monkeypatch.setattr(Working, "claim_timeout", 9)
    leases: list[float] = []

    def work(job: ClaimedJob) -> None:
        first = Job.objects.get(pk=job.id).lease_until

        def prolonged() -> bool:
            assert rescue.rescue() == 0, "the lease expired under a live worker"
            row = Job.objects.get(pk=job.id)
            leases.append((row.lease_until - first).total_seconds())
            return leases[-1] > 9

        wait_until(prolonged, what="a lease that was prolonged by its length")

    scripted("test.work", work)
    enqueue(Working)
    assert drain("test.work") == 1
    job = Job.objects.get()
    assert (job.state, job.claim_no) == ("completed", 1)
    assert max(leases) > 9


@pytest.mark.django_db(transaction=True)
def test_finished_jobs_are_settled_when_the_process_exits(scripted, ten_to_a_claim) -> None:
    """Those that have not begun go back."""
    ids = [enqueue(Working) for _ in range(3)]

    def work(job: ClaimedJob) -> None:
        if job.id == ids[1]:
            raise SystemExit(0)

    scripted("test.work", work)
    with pytest.raises(SystemExit):
        drain("test.work")
    assert list(Job.objects.order_by("id").values_list("state", flat=True)) == [
        "completed",
        "running",
        "pending",
    ]
    assert connection.is_usable()
