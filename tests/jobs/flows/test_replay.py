"""Run a whole flow again: the plan, and what the new flow has."""

from datetime import timedelta

import pytest

from tailrace.jobs.flows import InvalidJob, NewFlow, RunningFlow
from tailrace.jobs.flows.replay import plan_replay, replay_flow
from tailrace.jobs.models import Job
from tests.jobs.flows.kit import FAILS, states, stored
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db


def ended_flow(run_jobs) -> NewFlow:
    flow = NewFlow("import 7", deadline=timedelta(hours=2), unique_key="import:7")
    start = flow.add(Working, {"note": "start"}, name="start", priority=0)
    bad = flow.add(Working, FAILS, name="bad", after=start)
    flow.add(Other, {"note": "callback"}, name="callback", after_end=[start, bad])
    flow.enqueue()
    (job,) = claimed("test.work")
    running = RunningFlow(job)
    running.add(Working, name="more", joins=True)
    running.enqueue()
    run_and_settle([job])
    run_jobs()
    return flow


def test_the_plan_says_what_the_jobs_would_be_given(run_jobs) -> None:
    flow = ended_flow(run_jobs)
    plan = plan_replay(stored(flow))
    assert [(job.name, job.state, job.payload["note"]) for job in plan.jobs] == [
        ("start", "completed", "start"), ("bad", "failed", "no"),
        ("callback", "completed", "callback"),
    ]  # fmt: skip
    assert plan.added == 1
    assert plan.problems == plan.changed == []
    assert Job.objects.count() == 4


def test_the_plan_says_what_differs_and_what_cannot_be_created(run_jobs) -> None:
    flow = ended_flow(run_jobs)
    jobs = Job.objects.filter(flow_id=flow.id)
    jobs.filter(flow_name="start").update(payload={"do": "nothing"})
    jobs.filter(flow_name="bad").update(payload={"do": "nothing", "removed": 1})
    jobs.filter(flow_name="callback").update(handler="test.gone")
    plan = plan_replay(stored(flow))
    assert plan.jobs[0].changes == {"seconds": (None, 0.0), "note": (None, "")}
    problems = {job.name: job.problem for job in plan.problems}
    assert "removed" in problems["bad"]
    assert "test.gone" in problems["callback"]
    with pytest.raises(InvalidJob, match="cannot run again: 2 of its 3 jobs cannot be"):
        replay_flow(plan_replay(stored(flow)), "Ann")


def test_a_replay_is_a_new_flow_with_the_same_jobs(run_jobs) -> None:
    flow = ended_flow(run_jobs)
    again = replay_flow(plan_replay(stored(flow)), "Ann")
    assert states(again) == {"start": "pending", "bad": "waiting", "callback": "waiting"}
    row = stored(again)
    assert (row.name, row.copy_of, row.unique_key) == ("import 7", flow.id, None)
    assert row.deadline_at - row.created_at == timedelta(hours=2)
    start = Job.objects.get(flow_id=again.id, flow_name="start")
    original = Job.objects.get(flow_id=flow.id, flow_name="start")
    assert (start.payload, start.priority, start.copy_of) == (original.payload, 0, original.pk)
    run_jobs()
    assert states(again) == {"start": "completed", "bad": "failed", "callback": "completed"}
    assert states(flow)["bad"] == "failed"  # the original stays as it was


def test_a_parent_outside_of_the_flow_is_kept(run_jobs) -> None:
    other = NewFlow("other")
    outside = other.add(Working)
    other.enqueue()
    flow = NewFlow("flow")
    flow.add(Other, after=[outside, flow.add(Working)], name="child")
    flow.enqueue()
    run_jobs()
    again = replay_flow(plan_replay(stored(flow)), "Ann")
    child = Job.objects.get(flow_id=again.id, flow_name="child")
    run_jobs()
    child.refresh_from_db()
    assert child.state == "completed"
