"""Jobs that found no place at their destination are brought forward when places become free."""

from datetime import timedelta

import pytest

from tailrace.jobs.engine.in_flight.places import PostponedJobs
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job
from tests.kit import claimed, held
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db(transaction=True)


def postponed(clock) -> ClaimedJob:
    """Return the claim of a job that is due again in a minute."""
    id = enqueue(Working)
    [job] = claimed("test.work", 1)
    Job.objects.filter(pk=id).update(state="pending", due_at=clock.now() + timedelta(seconds=60))
    return job


def due() -> list[int]:
    return [job.id for job in claimed("test.work", 10)]


def test_one_is_brought_forward_for_each_place_in_order(clock) -> None:
    jobs, places = [postponed(clock) for _ in range(4)], PostponedJobs()
    for job in jobs:
        places.add("a", job)
    places.bring_forward(["a", "b", "a"])
    assert due() == [job.id for job in jobs[:2]]
    places.bring_forward(["a"] * 5)
    assert due() == [job.id for job in jobs[2:]]


def test_one_that_was_claimed_since_takes_no_place_from_the_next(clock) -> None:
    jobs, places = [postponed(clock) for _ in range(9)], PostponedJobs()
    for job in jobs:
        places.add("a", job)
    Job.objects.filter(pk__in=[job.id for job in jobs[:7]]).update(claim_no=2)
    places.bring_forward(["a"])
    assert jobs[7].id in due()


def test_one_that_was_postponed_again_is_known_by_its_last_claim(clock) -> None:
    job, places = postponed(clock), PostponedJobs()
    places.add("a", job)
    job.claim_no += 1
    Job.objects.filter(pk=job.id).update(claim_no=job.claim_no)
    places.add("a", job)
    places.bring_forward(["a"])
    assert due() == [job.id]


def test_one_that_another_transaction_holds_is_passed_over(clock) -> None:
    first, second = postponed(clock), postponed(clock)
    places = PostponedJobs()
    places.add("a", first)
    places.add("a", second)
    with held("SELECT FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", first.id):
        places.bring_forward(["a"])
        assert due() == [second.id]
