"""A job with several parents is decided once, whoever ends, retries or resumes at that instant."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.db import transaction

from tailrace.db.query import execute, query
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.flows.hold import hold
from tailrace.jobs.flows.operations import pause_flow, resume_flow
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Attempt, Flow, Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.runtime.invariant import all_invariants
from tailrace.jobs.runtime.states import State
from tests.kit import (
    PATIENCE,
    another_transaction,
    at_once,
    claimed,
    sessions_that_wait,
    wait_until,
)
from tests.sandbox.handlers import Once, Other, Working

pytestmark = pytest.mark.django_db(transaction=True)


def two_parents(**needs: str) -> tuple[list[int], int]:
    """Enqueue a flow; return the ids of two parents, the older first, and of their child."""
    flow = NewFlow("two parents")
    parents = [flow.add(Working), flow.add(Working)]
    child = flow.add(Other, **(needs or {"after": parents}))
    flow.enqueue()
    assert child.id is not None
    return [parent.id for parent in parents if parent.id], child.id


def state(id: int) -> str:
    return Job.objects.get(pk=id).state


def watched(id: int) -> int | None:
    return Job.objects.get(pk=id).after_id


def completes(job: ClaimedJob) -> None:
    settle.settle([Verdict(job, State.COMPLETED)])


def by_id(jobs: Sequence[ClaimedJob]) -> dict[int, ClaimedJob]:
    return {job.id: job for job in jobs}


@pytest.fixture
def decisions_wait() -> Iterator[None]:
    """Let a statement that decides a job, having read the parents, wait for an advisory lock."""
    execute(
        """CREATE FUNCTION flows_wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM pg_advisory_xact_lock_shared(7);
             RETURN NULL;
           END $$;
           CREATE TRIGGER flows_wait BEFORE UPDATE OF after_id ON tailrace_jobs_live
             FOR EACH STATEMENT EXECUTE FUNCTION flows_wait()"""
    )
    yield
    execute("DROP FUNCTION flows_wait CASCADE")


def started(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=lambda: at_once(1, lambda _: work()), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("last", [0, 1], ids=["the older ends last", "the newer ends last"])
def test_a_parent_that_ends_while_the_other_one_decides(last: int, decisions_wait: None) -> None:
    """The decision has read that the other parent is unfinished, and waits; that parent ends."""
    parents, child = two_parents()
    jobs = by_id(claimed("test.work"))
    if last == 1:  # the child waits for the older one now
        Job.objects.filter(pk=child).update(after_id=parents[0])
    with another_transaction("SELECT pg_advisory_xact_lock(7)"):
        first = started(lambda: completes(jobs[parents[1 - last]]))
        wait_until(lambda: sessions_that_wait() == 1, what="the decision")
        second = started(lambda: completes(jobs[parents[last]]))
        wait_until(lambda: state(parents[last]) == "completed")
    for thread in (first, second):
        thread.join(PATIENCE)
    assert state(child) == "pending"


def test_two_parents_that_end_at_one_instant() -> None:
    for _ in range(10):
        parents, child = two_parents()
        jobs = by_id(claimed("test.work"))
        at_once(2, lambda number: completes(jobs[parents[number]]))  # noqa: B023
        assert state(child) == "pending"
        assert [job.id for job in claimed("test.other")] == [child]


def test_a_hundred_parents_that_end_side_by_side() -> None:
    flow = NewFlow("wide")
    child = flow.add(Other, after=flow.group(Working, [None] * 100))
    flow.enqueue()
    batches = [claimed("test.work", 25) for _ in range(4)]

    def settle_one_by_one(number: int) -> None:
        for job in batches[number]:
            completes(job)

    at_once(4, settle_one_by_one)
    assert child.id
    assert state(child.id) == "pending"


def test_two_parents_that_end_in_transactions_open_at_once() -> None:
    """Neither transaction sees the end of the other parent."""
    parents, child = two_parents()
    jobs = by_id(claimed("test.work"))
    with transaction.atomic():
        completes(jobs[parents[1]])
        assert watched(child) == parents[0]
        other = started(lambda: completes(jobs[parents[0]]))
        wait_until(lambda: not other.is_alive() or sessions_that_wait(), what="the other's end")
    other.join(PATIENCE)
    assert state(child) == "pending"


@pytest.mark.parametrize("how", ["cancel", "complete"])
def test_a_parent_that_is_cancelled_while_the_other_one_ends(how: str) -> None:
    parents, child = two_parents()
    jobs = by_id(claimed("test.work", 1))
    (running,) = jobs
    other = next(id for id in parents if id != running)
    with transaction.atomic():
        cancel([other])
        thread = started(
            lambda: completes(jobs[running]) if how == "complete" else settle_cancelled(jobs)
        )
        wait_until(lambda: not thread.is_alive() or sessions_that_wait(), what="the other's end")
    thread.join(PATIENCE)
    assert state(child) == "cancelled"


def settle_cancelled(jobs: dict[int, ClaimedJob]) -> None:
    settle.settle([Verdict(job, State.CANCELLED) for job in jobs.values()])


def test_a_child_that_stays_locked_is_left_to_the_sweeper(clock) -> None:
    parents, child = two_parents()
    jobs = claimed("test.work")
    with another_transaction("SELECT 1 FROM tailrace_jobs_live WHERE id = %s FOR UPDATE", child):
        for job in jobs:
            completes(job)
        assert state(child) == "waiting"
    clock.step(11)
    (run,) = sweep.sweep(["jobs.waits_for_finished"])
    assert (run.found, run.repaired) == (1, 1)
    assert state(child) == "pending"
    assert watched(child) in parents


def test_a_short_lock_of_a_child_is_waited_for(monkeypatch) -> None:
    """The worker tries again: here the lock ends during its first pause."""
    _parents, child = two_parents()
    jobs = claimed("test.work")
    with another_transaction(
        "SELECT 1 FROM tailrace_jobs_live WHERE id = %s FOR UPDATE", child
    ) as other:
        monkeypatch.setattr(dependents.time, "sleep", lambda seconds: other.rollback())
        settle.settle([Verdict(job, State.COMPLETED) for job in jobs])
    assert state(child) == "pending"


# --- operators ------------------------------------------------------------------------------------


def paused() -> tuple[Flow, int]:
    flow = NewFlow("paused")
    job = flow.add(Once)
    flow.enqueue()
    row = Flow.objects.get(pk=flow.id)
    pause_flow(row, "me")
    assert job.id
    assert state(job.id) == "waiting"
    return row, job.id


def clean() -> bool:
    return not any(
        rule.find() for rule in all_invariants() if rule.name.startswith(("jobs.w", "fl"))
    )


def test_a_job_is_not_held_back_when_its_flow_is_resumed_meanwhile() -> None:
    """The sweeper has found a pending job of a paused flow; then the flow is resumed."""
    flow, job = paused()
    Job.objects.filter(pk=job).update(state="pending")
    with transaction.atomic():
        resume_flow(flow, "me")
        held = at_once(1, lambda _: hold(flow.pk))
    assert held == [0]
    assert hold(flow.pk) == 0
    assert state(job) == "pending"
    assert clean()


def test_a_job_replayed_while_its_flow_is_resumed_does_not_wait_for_ever() -> None:
    flow, job = paused()
    Job.objects.filter(pk=job).update(state="failed", finished_at=flow.created_at)
    with transaction.atomic():
        assert replay([job]).changed == [job]
        assert state(job) == "waiting"
        resumed = started(lambda: resume_flow(flow, "me"))
        wait_until(lambda: not resumed.is_alive() or sessions_that_wait(), what="the resumption")
    resumed.join(PATIENCE)
    assert state(job) == "pending"
    assert clean()


def test_a_flow_resumed_before_a_replay_commits_nothing_that_waits() -> None:
    flow, job = paused()
    Job.objects.filter(pk=job).update(state="failed", finished_at=flow.created_at)
    with transaction.atomic():
        resume_flow(flow, "me")
        replayed = started(lambda: replay([job]))
        wait_until(lambda: not replayed.is_alive() or sessions_that_wait(), what="the replay")
    replayed.join(PATIENCE)
    assert state(job) == "pending"


def test_a_flow_that_is_paused_while_a_parent_ends(clock) -> None:
    """Whoever is first: no job of the paused flow can begin, and all begin when it is resumed."""
    for _ in range(5):
        parents, child = two_parents()
        flow = Flow.objects.latest("pk")
        jobs = by_id(claimed("test.work"))
        calls = [lambda: pause_flow(flow, "me"), lambda: [completes(jobs[id]) for id in parents]]  # noqa: B023
        at_once(2, lambda number: calls[number]())  # noqa: B023
        sweep.sweep(["flows.job_of_paused_flow"])
        clock.step(20)
        assert state(child) == "waiting"
        assert claimed("test.other") == []
        resume_flow(flow, "me")
        assert [job.id for job in claimed("test.other")] == [child]


def test_a_parent_replayed_while_the_child_is_decided(decisions_wait: None) -> None:
    """The decision has read that a parent failed, and cancels the child; the replay of that parent
    comes before or after it, and lets the child wait again, or leaves it to be replayed."""
    parents, child = two_parents()
    jobs = by_id(claimed("test.work"))
    failed = Verdict(jobs[parents[0]], State.FAILED, attempt=Attempt.Outcome.FAILED)
    settle.settle([failed])
    with another_transaction("SELECT pg_advisory_xact_lock(7)"):
        decision = started(lambda: completes(jobs[parents[1]]))
        wait_until(lambda: sessions_that_wait() == 1, what="the decision")
        replayed = started(lambda: replay([parents[0]]))
        wait_until(lambda: state(parents[0]) == "pending" or sessions_that_wait() == 2)
    for thread in (decision, replayed):
        thread.join(PATIENCE)
    if state(child) == "cancelled":
        assert replay([child]).changed == [child]
    assert state(child) == "waiting"
    assert watched(child) == parents[0]
    for job in claimed("test.work"):
        completes(job)
    assert state(child) == "pending"
    assert query("SELECT count(*) FROM tailrace_jobs_job WHERE flow_id IS NOT NULL") == [(3,)]
