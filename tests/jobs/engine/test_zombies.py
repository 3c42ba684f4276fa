"""A zombie is a worker that runs on without its lease: it settles nothing and renews nothing."""

import pytest

from tailrace.jobs.engine.leases.renew import renew
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import ClaimedJob, LeaseLost
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime.states import State
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def completed(jobs: list[ClaimedJob]) -> list[Verdict]:
    return [Verdict(job, State.COMPLETED) for job in jobs]


def test_a_zombie_settles_nothing(clock) -> None:
    enqueue(Working)
    zombie = claimed("test.work")
    clock.step(61)
    assert rescue.rescue() == 1
    owner = claimed("test.work")
    assert settle.settle(completed(zombie)) == {}
    assert Job.objects.get().state == "running"
    assert settle.settle(completed(owner)) == {owner[0].id: "completed"}


def test_a_zombie_settles_nothing_even_if_nobody_claimed_again(clock) -> None:
    enqueue(Working)
    zombie = claimed("test.work")
    clock.step(61)
    rescue.rescue()
    assert settle.settle(completed(zombie)) == {}
    job = Job.objects.get()
    assert (job.state, job.attempt) == ("pending", 1)
    assert Attempt.objects.get().outcome == "lost"


def test_a_worker_cannot_settle_with_anothers_name() -> None:
    enqueue(Working)
    (job,) = claimed("test.work")
    job.worker = "somebody:else"
    assert settle.settle(completed([job])) == {}
    assert renew([job]) == 0
    with pytest.raises(LeaseLost):
        job.check_cancelled()


def test_a_zombie_renews_nothing_and_gets_lease_lost(clock, scripted) -> None:
    def work(job: ClaimedJob) -> None:
        clock.step(61)
        rescue.rescue()
        claimed("test.work")
        job.check_cancelled()

    scripted("test.work", work)
    enqueue(Working)
    jobs = claimed("test.work")
    assert run_and_settle(jobs) == {}
    assert renew(jobs) == 0
    assert Job.objects.get().claim_no == 2
