"""Cancel, pause, resume and retry a flow; its deadline; its state."""

from datetime import timedelta

import pytest

from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.flows.operations import cancel_flow, pause_flow, resume_flow, retry_flow
from tailrace.jobs.flows.state import FlowState, status
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tests.jobs.flows.kit import FAILS, states, stored
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db


def state(flow: NewFlow) -> str:
    return status(stored(flow)).state.value


def chain_with_clean_up() -> NewFlow:
    flow = NewFlow("chain")
    _first, last = flow.chain([Working, Working])
    flow.add(Other, after_end=last, name="clean up")
    flow.enqueue()
    return flow


# --- states ---------------------------------------------------------------------------------------


def test_a_flow_runs_until_its_last_job_has_ended(run_jobs) -> None:
    flow = chain_with_clean_up()
    before = status(stored(flow))
    assert (before.state, before.jobs, before.ended, before.ended_at) == ("running", 3, 0, None)
    run_jobs("test.work")
    assert status(stored(flow)).ended == 2
    run_jobs()
    after = status(stored(flow))
    assert (after.state, after.counts) == (FlowState.COMPLETED, {"completed": 3})
    assert after.ended_at == max(Job.objects.values_list("finished_at", flat=True))


def test_a_flow_is_completed_with_failures(run_jobs) -> None:
    flow = NewFlow("fails")
    flow.chain([(Working, FAILS), Working])
    flow.enqueue()
    run_jobs()
    assert state(flow) == "completed with failures"


# --- cancel ---------------------------------------------------------------------------------------


def test_a_cancelled_flow_still_cleans_up(run_jobs) -> None:
    flow = chain_with_clean_up()
    result = cancel_flow(stored(flow), "Ann")
    assert len(result.changed) == 2
    assert state(flow) == "running"
    assert states(flow)["clean up"] == "pending"
    assert Job.objects.get(flow_name="work").error == "cancelled by Ann with its flow"
    run_jobs()
    assert state(flow) == "cancelled"


def test_a_flow_is_cancelled_with_its_clean_up() -> None:
    flow = chain_with_clean_up()
    cancel_flow(stored(flow), "Ann", clean_up=False)
    assert set(states(flow).values()) == {"cancelled"}


def test_a_running_job_of_a_cancelled_flow_is_asked_to_stop() -> None:
    flow = chain_with_clean_up()
    (job,) = claimed("test.work")
    result = cancel_flow(stored(flow), "Ann")
    assert result.stop_requested == [job.id]
    assert states(flow) == {"work": "running", "work-2": "cancelled", "clean up": "pending"}


# --- pause ----------------------------------------------------------------------------------------


def test_no_job_of_a_paused_flow_begins(run_jobs) -> None:
    flow = NewFlow("paused")
    flow.chain([Working, Working])
    flow.enqueue()
    other = NewFlow("other")
    other.add(Working)
    other.enqueue()
    assert pause_flow(stored(flow), "Ann") == 1
    run_jobs()
    assert states(flow) == {"work": "waiting", "work-2": "waiting"}
    assert states(other) == {"work": "completed"}
    assert state(flow) == "paused"
    assert resume_flow(stored(flow), "Ann") == 1
    run_jobs()
    assert state(flow) == "completed"


def test_the_children_of_a_job_that_ends_in_a_paused_flow_wait(run_jobs) -> None:
    flow = NewFlow("paused")
    flow.add(Other, after=flow.group(Working, [None, None]), name="callback")
    flow.enqueue()
    jobs = claimed("test.work", 2)
    pause_flow(stored(flow), "Ann")
    run_and_settle(jobs)
    assert states(flow)["callback"] == "waiting"
    assert resume_flow(stored(flow), "Ann") == 1
    assert states(flow)["callback"] == "pending"


def test_a_retried_job_of_a_paused_flow_is_held_back(clock) -> None:
    flow = NewFlow("paused")
    flow.add(Working, {"do": "retry", "seconds": 60})
    flow.enqueue()
    jobs = claimed("test.work")
    pause_flow(stored(flow), "Ann")
    run_and_settle(jobs)
    assert states(flow) == {"work": "pending"}
    sweep.sweep(["flows.job_of_paused_flow"])
    assert states(flow) == {"work": "waiting"}
    resume_flow(stored(flow), "Ann")
    assert states(flow) == {"work": "pending"}
    clock.step(61)
    assert len(claimed("test.work")) == 1


def test_a_paused_flow_can_be_cancelled(run_jobs) -> None:
    flow = chain_with_clean_up()
    pause_flow(stored(flow), "Ann")
    cancel_flow(stored(flow), "Ann")
    run_jobs()
    assert states(flow) == {"work": "cancelled", "work-2": "cancelled", "clean up": "completed"}


def test_a_paused_flow_can_be_paused_and_resumed_twice() -> None:
    flow = chain_with_clean_up()
    pause_flow(stored(flow), "Ann")
    since = stored(flow).paused_at
    assert pause_flow(stored(flow), "Ben") == 0
    assert stored(flow).paused_at == since
    resume_flow(stored(flow), "Ann")
    assert resume_flow(stored(flow), "Ann") == 0


# --- retry ----------------------------------------------------------------------------------------


def test_a_retry_continues_from_the_failed_jobs_on(run_jobs, scripted) -> None:
    calls: list[str] = []
    ends = {"b": RuntimeError("down")}

    def work(job) -> None:
        calls.append(job.payload.note)
        if job.payload.note in ends:
            raise ends[job.payload.note]

    scripted("test.once", work)
    flow = NewFlow("retry")
    flow.chain([("test.once", {"note": note}) for note in "abc"])
    flow.enqueue()
    run_jobs()
    assert (calls, state(flow)) == (["a", "b"], "completed with failures")
    ends.clear()
    result = retry_flow(stored(flow), "Ann")
    assert (len(result.changed), result.refused) == (2, {})
    assert list(states(flow).values()) == ["completed", "pending", "waiting"]
    run_jobs()
    assert (calls, state(flow)) == (["a", "b", "b", "c"], "completed")


def test_a_callback_whose_parents_are_replayed_one_by_one(run_jobs, scripted) -> None:
    """Each replay lets the callback wait again; it runs when none of its parents lacks success."""
    bad = {"1", "3"}

    def work(job) -> None:
        if job.payload.note in bad:
            raise RuntimeError("down")

    scripted("test.once", work)
    flow = NewFlow("group")
    pages = flow.group("test.once", [{"note": str(number)} for number in range(5)], name="page")
    flow.add(Other, after=pages, name="callback")
    flow.enqueue()
    run_jobs()
    assert states(flow)["callback"] == "cancelled"
    bad.clear()
    retry_flow(stored(flow), "Ann")
    run_jobs("test.once")
    assert states(flow)["callback"] == "pending"


def test_a_cancelled_flow_can_be_retried(run_jobs) -> None:
    flow = chain_with_clean_up()
    cancel_flow(stored(flow), "Ann", clean_up=False)
    retry_flow(stored(flow), "Ann")
    assert states(flow) == {"work": "pending", "work-2": "waiting", "clean up": "waiting"}
    run_jobs()
    assert state(flow) == "completed"


def test_a_job_is_not_retried_while_its_parent_stays_failed(run_jobs) -> None:
    flow = NewFlow("one")
    flow.add(Other, after=[flow.add(Working, FAILS), flow.add(Working)], name="child")
    flow.enqueue()
    run_jobs()
    replay([Job.objects.get(flow_name="child").pk])
    assert states(flow)["child"] == "cancelled"


# --- deadline -------------------------------------------------------------------------------------


def test_what_is_unfinished_at_the_deadline_is_cancelled(run_jobs, clock) -> None:
    flow = NewFlow("late", deadline=timedelta(minutes=5))
    flow.add(Working)
    slow = flow.add(Working, delay=600, name="slow")
    flow.add(Other, after_failure=slow, name="tell")
    flow.enqueue()
    run_jobs()
    clock.step(299)
    sweep.sweep(["flows.deadline_passed"])
    assert states(flow)["slow"] == "pending"
    clock.step(2)
    sweep.sweep(["flows.deadline_passed"])
    assert states(flow) == {"work": "completed", "slow": "cancelled", "tell": "pending"}
    assert Job.objects.get(flow_name="slow").error == "the deadline of its flow has passed"
    run_jobs()
    assert state(flow) == "overdue"
    retry_flow(stored(flow), "Ann")
    clock.step(600)
    run_jobs()
    assert (state(flow), stored(flow).deadline_at) == ("completed", None)


def test_a_flow_that_met_its_deadline_stays_as_it_is(run_jobs, clock) -> None:
    flow = NewFlow("in time", deadline=timedelta(minutes=5))
    flow.add(Working)
    flow.enqueue()
    run_jobs()
    clock.step(301)
    sweep.sweep(["flows.deadline_passed"])
    assert (state(flow), stored(flow).deadline_met) == ("completed", True)


def test_a_flow_is_overdue_while_it_cleans_up(run_jobs, clock) -> None:
    flow = NewFlow("clean up", deadline=timedelta(minutes=5))
    flow.add(Other, after_end=flow.add(Working), delay=600, name="clean up")
    flow.enqueue()
    run_jobs()
    clock.step(301)
    sweep.sweep(["flows.deadline_passed"])
    assert states(flow)["clean up"] == "pending"
    clock.step(300)
    run_jobs()
    assert (states(flow)["clean up"], state(flow)) == ("completed", "overdue")


def test_an_overdue_flow_that_is_paused_cleans_up(run_jobs, clock) -> None:
    flow = NewFlow("paused", deadline=timedelta(minutes=5))
    flow.add(Other, after_end=flow.add(Working), name="clean up")
    flow.enqueue()
    pause_flow(stored(flow), "Ann")
    clock.step(301)
    sweep.sweep(["flows.deadline_passed"])
    run_jobs()
    assert states(flow) == {"work": "cancelled", "clean up": "completed"}
    assert state(flow) == "overdue"


def test_a_job_that_is_cancelled_alone_decides_its_children(run_jobs) -> None:
    flow = chain_with_clean_up()
    cancel([Job.objects.get(flow_name="work").pk])
    run_jobs()
    assert states(flow) == {"work": "cancelled", "work-2": "cancelled", "clean up": "completed"}
    assert state(flow) == "completed with failures"
