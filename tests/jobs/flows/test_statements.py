"""How many statements the jobs of a flow cost: no more than other jobs, until one is decided."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connections

from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.models import Flow, Job
from tailrace.jobs.runtime.states import State
from tailrace.jobs.testing import Clock
from tests.kit import claimed
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db(transaction=True)


def statements_of(work: Callable[[], Any]) -> list[str]:
    """Return the statements that `work` executes, on whatever connection."""
    executed: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        executed.append(sql)
        return execute(sql, params, many, context)

    with ExitStack() as wrapped:
        for alias in connections:
            wrapped.enter_context(connections[alias].execute_wrapper(note))
        work()
    return executed


def decisions_in(executed: list[str]) -> list[str]:
    return [sql for sql in executed if "tailrace_jobs_dependency" in sql]


def settle_two() -> None:
    settle.settle([Verdict(job, State.COMPLETED) for job in claimed("test.work", 2)])


def test_parents_for_which_no_job_waits_now_settle_like_jobs_without_a_flow() -> None:
    """A callback waits for one of its parents, the newest: the others cost nothing more."""
    enqueue_many(Working, [{}] * 4)
    settle_two()  # what a process looks up once
    alone = statements_of(settle_two)
    flow = NewFlow("wide")
    flow.add(Other, after=flow.group(Working, [None] * 5))
    flow.enqueue()
    for _ in range(2):
        in_flow = statements_of(settle_two)
        assert in_flow == alone
        assert not decisions_in(in_flow)


def test_the_last_parent_costs_one_statement_more_however_many_there_are() -> None:
    enqueue_many(Working, [{}] * 4)
    settle_two()
    alone = statements_of(settle_two)
    for parents in (2, 40):
        flow = NewFlow("wide")
        flow.add(Other, after=flow.group(Working, [None] * parents))
        flow.enqueue()
        for _ in range(parents // 2 - 1):
            settle_two()
        last = statements_of(settle_two)
        assert len(decisions_in(last)) == 1
        assert last[: len(alone)] == alone


def test_a_job_whose_other_parent_ended_yesterday_costs_another_statement(clock: Clock) -> None:
    """Most parents ended today: the partitions of other days are looked at for the others only."""
    flow = NewFlow("two days")
    flow.add(Other, after=flow.group(Working, [None] * 3))
    flow.enqueue()
    settle_two()
    clock.step(86_400)
    last = statements_of(settle_two)
    assert len(decisions_in(last)) == 2
    assert Job.objects.get(handler="test.other").state == "pending"


def test_a_flow_is_enqueued_with_as_many_statements_whatever_its_size() -> None:
    def enqueue(parents: int) -> list[str]:
        flow = NewFlow("wide")
        flow.add(Other, after=flow.group(Working, [None] * parents))
        return statements_of(flow.enqueue)

    assert len(enqueue(200)) == len(enqueue(2)) <= 6
    assert Flow.objects.count() == 2
