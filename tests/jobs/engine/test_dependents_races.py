"""A job that waits for another is moved on, whatever happens while it is inserted."""

import threading

import pytest
from django.db import transaction

from tailrace.db.query import query
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.runtime.states import State
from tests.kit import PATIENCE, at_once, claimed, sessions_that_wait, wait_until
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db(transaction=True)


def state(id: int | None) -> str:
    return Job.objects.get(pk=id).state


def settle_all() -> None:
    settle.settle([Verdict(job, State.COMPLETED) for job in claimed("test.work")])


def test_a_parent_that_settles_before_the_commit_releases() -> None:
    parent = enqueue(Working)
    with transaction.atomic():
        child = enqueue("test.other", after=parent)
        at_once(1, lambda _: settle_all())
    assert state(child) == "pending"


def test_a_parent_that_is_cancelled_before_the_commit_cancels() -> None:
    parent = enqueue(Working)
    with transaction.atomic():
        child = enqueue("test.other", after=parent)
        at_once(1, lambda _: cancel([parent]))
    assert state(child) == "cancelled"


@pytest.mark.parametrize("settled_first", [True, False])
def test_a_settlement_that_cannot_see_the_child_releases(settled_first: bool) -> None:
    """The settlement of two jobs begins before the child's commit, and waits for a row until then:
    for that of the parent, or for the other one, so that it comes to the parent's later."""
    other, parent = enqueue(Working), enqueue(Working)
    verdicts = [Verdict(job, State.COMPLETED) for job in claimed("test.work")]
    children: list[int | None] = []
    calls = [
        lambda: settle.settle(verdicts),
        lambda: children.append(enqueue("test.other", after=parent)),
    ]
    threads = [
        threading.Thread(target=lambda call=call: at_once(1, lambda _: call())) for call in calls
    ]
    with transaction.atomic():
        locked = parent if settled_first else other
        query("SELECT id FROM tailrace_jobs_job WHERE id = %(id)s FOR UPDATE", id=locked)
        threads[0].start()
        wait_until(lambda: sessions_that_wait() == 1)
        threads[1].start()
        wait_until(lambda: sessions_that_wait() == 2 if settled_first else children)
        assert Job.objects.filter(after=parent).exists(), "it is committed"
    for thread in threads:
        thread.join(PATIENCE)
    assert [state(child) for child in children] == ["pending"]


def test_a_settlement_waits_for_no_publisher() -> None:
    """One has merged a job into the child, which waits: it is passed over, and released after."""
    parent = enqueue(Working)
    child = enqueue("test.other", after=parent, unique_key="k")
    with transaction.atomic():
        assert enqueue("test.other", unique_key="k") == child
        at_once(1, lambda _: settle_all())
        assert state(parent) == "completed"
    assert state(child) == "pending"
