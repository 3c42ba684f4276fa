"""A job that explain calls ready, or in the next claim, is one that a claim takes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tailrace.db import clock
from tailrace.jobs.engine import drain, registry
from tailrace.jobs.engine.claiming import claim, pace
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.inspection.explain.next_claim import Claimable, claim_status
from tests.examples import few_and_many
from tests.kit import change_queue, claimed

pytestmark = pytest.mark.django_db

GONE = "test.gone"
LANES = "abc"
FEW, MANY = 25, 120
AGREED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Case:
    """A queue as it may stand, and its handler's batch size."""

    handler: str
    queue: dict[str, Any]
    jobs: Sequence[dict[str, Any]]
    batch_size: int


def _job(lanes: Sequence[str], isolates: bool) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "state": st.sampled_from(["pending"] * 6 + ["running", "running", "waiting", "failed"]),
            "seconds": st.sampled_from([-90, -60, -60, -30, -5, 60, 3600]),
            "priority": st.sampled_from([0, 1, 1, 1, 2, 3]),
            "lane": st.sampled_from(lanes),
            "isolate": st.sampled_from([False] * 6 + [True]) if isolates else st.just(False),
        }
    )


@st.composite
def cases(draw: st.DrawFn, handlers: Sequence[str], isolates: bool = True) -> Case:
    handler = draw(st.sampled_from(handlers))
    lanes = ["", *LANES, *LANES] if handler in ("test.fair", "test.ordered") else ["", "a"]
    queue = {
        "paused": draw(st.sampled_from([False] * 9 + [True])),
        "max_running": draw(st.sampled_from([None, None, None, 1, 3, 6, 2000])),
        "rate_limit": draw(st.sampled_from([None, None, None, 0.5, 2.0, 5.0])),
        "tokens": draw(st.sampled_from([0.0, 0.9, 1.0, 3.5, 5.0])),
    }
    jobs = draw(
        st.lists(_job(lanes, isolates), min_size=draw(st.sampled_from([0, 5])), max_size=14)
    )
    return Case(handler, queue, jobs, draw(st.sampled_from([1, 2, 3, 5, 8, 20])))


@contextmanager
def claims_of(handler: Handler, count: int) -> Iterator[None]:
    """Let claims of this handler take so many jobs."""
    with (
        mock.patch.object(pace, "MOST_JOBS", count),
        mock.patch.object(type(handler), "batch_size", count),
    ):
        yield


@contextmanager
def arranged(case: Case) -> Iterator[list[int]]:
    """Let the case be so, within a savepoint; gives the ids of its jobs."""
    handler = registry.find(case.handler)
    with undone():
        fields = dict(case.queue)
        now = clock.now()
        fields["paused_at"] = now if fields.pop("paused") else None
        # Nothing trickles into the bucket between explaining and claiming.
        later = now + timedelta(hours=1)
        if handler is not None:
            change_queue(case.handler, tokens_at=later, **fields)
        jobs = [
            Job(handler=case.handler, due_at=now + timedelta(seconds=job["seconds"]), **_rest(job))
            for job in case.jobs
        ]
        if handler is None:
            yield [job.pk for job in Job.objects.bulk_create(jobs)]
            return
        with claims_of(handler, case.batch_size):
            yield [job.pk for job in Job.objects.bulk_create(jobs)]


def _rest(job: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name != "seconds"}


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def explained(case: Case, ids: Sequence[int], attribute: str) -> dict[Claimable, set[int]]:
    """Return the ids of the jobs by what explain answers; each answer in words, too."""
    queue = Queue.objects.filter(pk=case.handler).first()
    by_answer: dict[Claimable, set[int]] = {answer: set() for answer in Claimable}
    for job in Job.objects.filter(pk__in=ids):
        status = claim_status(job, queue)
        note(f"{job.pk} {status}")
        assert status.reasons or status.ready is not Claimable.NO
        by_answer[getattr(status, attribute)].add(job.pk)
    return by_answer


def taken(name: str, last_lane: str = "") -> set[int]:
    """Return what a claim takes that is jobs now, by a worker that served this lane last."""
    with undone():
        claim._last_lanes[name] = last_lane
        return {job.id for job in claimed(name)}


def taken_from_anywhere(name: str) -> tuple[set[int], set[int]]:
    """Return what a claim takes wherever its worker stands in the round, and from somewhere."""
    rounds = [taken(name, lane) for lane in ("", *LANES)]
    return set.intersection(*rounds), set.union(*rounds)


@few_and_many(AGREED, FEW, MANY, case=cases(["test.work", "test.batch"]))
def test_a_plain_claim_takes_what_is_in_the_next_claim(case: Case) -> None:
    with arranged(case) as ids:
        explained_jobs = explained(case, ids, "next_claim")
        assert explained_jobs[Claimable.YES] == taken(case.handler)
        assert not explained_jobs[Claimable.DEPENDS_ON_LANE]


@few_and_many(AGREED, FEW, MANY, case=cases(["test.work", "test.batch"]))
def test_plain_claims_in_all_take_exactly_what_is_ready(case: Case) -> None:
    with arranged(case) as ids:
        explained_jobs = explained(case, ids, "ready")
        mine: set[int] = set()
        while batch := {job.id for job in claimed(case.handler)}:
            mine |= batch
        assert explained_jobs[Claimable.YES] == mine


@few_and_many(AGREED, FEW, MANY, case=cases(["test.fair", "test.ordered"], isolates=False))
def test_a_lane_claim_takes_what_is_in_the_next_claim(case: Case) -> None:
    with arranged(case) as ids:
        explained_jobs = explained(case, ids, "next_claim")
        always, sometimes = taken_from_anywhere(case.handler)
        assert (explained_jobs[Claimable.YES], explained_jobs[Claimable.DEPENDS_ON_LANE]) == (
            always,
            sometimes - always,
        )


@few_and_many(AGREED, FEW, MANY, case=cases(["test.fair", "test.ordered"]))
def test_a_lane_claim_is_predicted_beside_isolated_jobs(case: Case) -> None:
    with arranged(case) as ids:
        explained_jobs = explained(case, ids, "next_claim")
        always, sometimes = taken_from_anywhere(case.handler)
        assert explained_jobs[Claimable.YES] <= always
        assert not explained_jobs[Claimable.NO] & sometimes


@few_and_many(AGREED, FEW, MANY, draws=st.data())
@pytest.mark.parametrize("handler", ["test.work", "test.fair", "test.ordered"])
def test_a_claim_without_batch_limit_takes_what_is_ready(
    draws: st.DataObject, handler: str
) -> None:
    case = draws.draw(cases([handler]))
    with arranged(case) as ids:
        explained_jobs = explained(case, ids, "ready")
        Job.objects.filter(pk__in=ids).update(isolate=False)
        with claims_of(registry.get(case.handler), 1000):
            always, sometimes = taken_from_anywhere(case.handler)
        assert (explained_jobs[Claimable.YES], explained_jobs[Claimable.DEPENDS_ON_LANE]) == (
            always,
            sometimes - always,
        )


@given(case=cases([GONE]))
@settings(AGREED, max_examples=20)
def test_nothing_of_an_unknown_handler_is_ready(case: Case) -> None:
    with arranged(case) as ids:
        assert explained(case, ids, "ready")[Claimable.NO] == set(ids)
        with pytest.raises(registry.UnknownHandler):
            drain.drain(GONE)


def test_jobs_before_are_counted_up_to_a_maximum() -> None:
    name = "test.work"
    Job.objects.bulk_create([Job(handler=name, due_at=clock.now()) for _ in range(1200)])
    last = Job.objects.order_by("-pk")[0]
    status = claim_status(last, Queue.objects.get(pk=name))
    assert (status.ready, status.next_claim, status.before) == (Claimable.YES, Claimable.NO, 1000)
