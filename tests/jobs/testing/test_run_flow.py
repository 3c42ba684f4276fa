"""`run_flow` runs the jobs of one flow to their end."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import TestCase

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.flows import NewFlow, RunningFlow
from tailrace.jobs.flows.operations import pause_flow
from tailrace.jobs.handler import Retry, Snooze
from tailrace.jobs.models import Flow, Job, Queue
from tailrace.jobs.testing import perform_flow, run_flow
from tests.jobs.testing.shop import MonthlyReport
from tests.sandbox.handlers import Other, Working

Script = Callable[[str, Callable[[Any], Any]], None]


def flow_of_three() -> NewFlow:
    flow = NewFlow("three")
    flow.add(Other, after=flow.group(Working, [None, None]))
    return flow


class InATestCase(TestCase):
    def test_a_new_flow_is_enqueued_and_run(self) -> None:
        flow = flow_of_three()
        status = run_flow(flow)
        assert (status.state, status.counts) == ("completed", {"completed": 3})
        assert flow.id is not None
        assert run_flow(flow) == run_flow(flow.id) == status


@pytest.mark.django_db
def test_nothing_else_is_run() -> None:
    other = enqueue(Working)
    run_flow(flow_of_three())
    assert Job.objects.get(pk=other).state == "pending"


@pytest.mark.django_db
def test_later_jobs_retries_and_paused_queues_run_at_once(scripted: Script) -> None:
    def succeed_at_last(job: Any) -> str:
        if job.attempt < 3:
            raise Retry("not yet", after=3600)
        return "at last"

    scripted("test.work", succeed_at_last)
    Queue.objects.filter(name="test.work").update(paused_at=Now())
    flow = NewFlow("later")
    flow.add(Working, delay=3600)
    assert run_flow(flow).counts == {"completed": 1}
    assert Job.objects.get(flow_id=flow.id).result == "at last"


@pytest.mark.django_db
def test_jobs_that_are_added_run_too(scripted: Script) -> None:
    def add(job: Any) -> None:
        running = RunningFlow(job)
        running.add(Other, joins=True)
        running.enqueue()

    scripted("test.work", add)
    flow = NewFlow("grows")
    flow.add(Working)
    assert run_flow(flow).counts == {"completed": 2}


@pytest.mark.django_db
def test_a_failure_is_in_the_status_and_an_error_fails_the_test() -> None:
    flow = NewFlow("fails")
    flow.chain([(Working, {"do": "permanent", "note": "no"}), Other])
    assert run_flow(flow).counts == {"failed": 1, "cancelled": 1}
    for may_fail in (True, False):
        flow = NewFlow("raises")
        flow.add(MonthlyReport, {"month": ""})
        if may_fail:
            assert run_flow(flow, may_fail=True).counts == {"failed": 1}
        else:
            with pytest.raises(
                AssertionError, match=r'(?s)is failed.*raise ValueError\("no month"\)'
            ):
                run_flow(flow)


@pytest.mark.django_db
def test_a_job_that_is_snoozed_endlessly_is_named(
    scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def snooze(job: Any) -> None:
        raise Snooze("later", seconds=60)

    scripted("test.work", snooze)
    monkeypatch.setattr(perform_flow, "MOST_RUNS", 5)
    flow = NewFlow("snoozes")
    job = flow.add(Working)
    with pytest.raises(AssertionError) as error:
        run_flow(flow)
    assert str(error.value) == (
        f"job {job.id} of flow {flow.id} has run 5 times: is it snoozed endlessly?"
    )


@pytest.mark.django_db
def test_a_paused_flow_does_not_run() -> None:
    flow = flow_of_three()
    pause_flow(Flow.objects.get(pk=flow.enqueue()), "Ann")
    assert run_flow(flow).state == "paused"


@pytest.mark.django_db
def test_a_flow_that_does_not_exist_is_named() -> None:
    with pytest.raises(AssertionError, match="there is no flow 123456789: was the transaction"):
        run_flow(123456789)
