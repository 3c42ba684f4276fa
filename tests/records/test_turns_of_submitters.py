"""A person's deposit does not wait behind a harvest: in each step, the submitters take turns."""

from collections import Counter
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from tailrace.domains.records.depositions.submit import submit
from tailrace.domains.records.models import Deposition, KeywordEntry, Record
from tailrace.domains.records.search.searching import search
from tailrace.jobs.models import Job
from tests.kit import claimed, run_and_settle
from tests.records.kit import draft, harvested, source
from tests.records.test_chain import CHAIN

pytestmark = pytest.mark.django_db
*STEPS, INDEX = CHAIN
PEOPLE = ("ana", "bor")
WAITING = 300


@pytest.fixture
def people() -> list[User]:
    """Two users with a deposit each, behind a harvest."""
    submit(harvested(WAITING, source()))
    users = [User.objects.create_user(name) for name in PEOPLE]
    submit([draft(f"Glacier of {user.username}", user) for user in users])
    return users


def run_claim(name: str) -> Counter[tuple[str, bool]]:
    """Run the next claim of the queue; count its jobs by routing key, and by whether a user
    submitted the record."""
    jobs = claimed(name)
    run_and_settle(jobs)
    return Counter(
        (job.routing_key, job.event.raw_payload["account"] is not None) for job in jobs if job.event
    )


def test_deposits_pass_each_step_with_the_first_claim(people: list[User]) -> None:
    for step in STEPS:
        batch = run_claim(step)
        assert batch["", True] == len(people)
        assert batch["", False] > 1, "the other jobs of the batch are of the harvest"
    assert Record.objects.filter(owner__in=people).count() == len(people)
    assert Deposition.objects.filter(state="submitted").count() > WAITING / 2


def test_deposits_are_found_before_the_harvest_is_indexed(
    people: list[User], run_jobs: Callable[..., int]
) -> None:
    run_jobs(*STEPS)
    batches = [run_claim(INDEX) for _ in range(8)]
    [ana, _bor] = people
    hits = search(ana, "glacier", "keyword").hits
    assert sorted(hit.record.title for hit in hits) == [f"Glacier of {name}" for name in PEOPLE]
    assert not Job.objects.filter(handler=INDEX, event__payload__account__gt=0).pending().exists()
    assert KeywordEntry.objects.count() < 10, "the harvest waits"
    mixed = [batch for batch in batches if batch["vector", True] and batch["vector", False]]
    assert mixed, "jobs of several submitters share a batch of the vector index"
