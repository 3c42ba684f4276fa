"""What goes wrong while jobs of a flow wait: they are decided all the same, and once."""

from datetime import timedelta

import pytest

from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import scan
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.flows.operations import OVERDUE, cancel_flow, pause_flow, resume_flow, retry_flow
from tailrace.jobs.flows.state import FlowState, status
from tailrace.jobs.models import Flow, Job, Queue
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.runtime.invariant import all_invariants
from tailrace.jobs.runtime.states import State
from tests.kit import another_transaction, claimed
from tests.properties.machine.dying import dying
from tests.sandbox.handlers import Once, Other, Working
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db

RETRY = {"do": "retry", "seconds": 60, "note": "again"}
FAILS = {"do": "permanent", "note": "no"}
RULES = [rule for rule in all_invariants() if rule.name.startswith(("jobs.waits", "flows."))]


def states(flow: NewFlow) -> dict[str, str]:
    jobs = Job.objects.filter(flow_id=flow.id)
    return {str(job.flow_name): job.state for job in jobs}


def row_of(flow: NewFlow) -> Flow:
    return Flow.objects.get(pk=flow.id)


def findings() -> dict[str, list]:
    return {rule.name: found for rule in RULES if (found := list(rule.find()))}


def with_callback(*payloads: dict | None, **options) -> NewFlow:
    flow = NewFlow("faults", **options)
    parents = flow.group(Working, payloads or [None, None], name="parent")
    flow.add(Other, after=parents, name="callback")
    flow.enqueue()
    return flow


# --- parents that do not end in one go ------------------------------------------------------------


@pytest.mark.parametrize("do", ["retry", "snooze", "raise"])
def test_a_parent_that_is_tried_again_lets_its_children_wait(do, run_jobs, clock, scripted) -> None:
    flow = with_callback({"do": do, "seconds": 60, "note": "again"}, None)
    run_jobs()
    assert states(flow) == {"parent-1": "pending", "parent-2": "completed", "callback": "waiting"}
    assert not findings()
    scripted("test.work", lambda job: None)
    clock.step(400)
    run_jobs()
    assert set(states(flow).values()) == {"completed"}


def test_a_parent_that_failed_is_replayed_while_children_wait(run_jobs, clock, scripted) -> None:
    """The other parent is not due before; the child has not been decided, and runs in the end."""
    flow = NewFlow("replayed")
    bad, late = flow.add(Working, FAILS, name="bad"), flow.add(Working, delay=600, name="late")
    flow.add(Other, after=[bad, late], name="callback")
    flow.add(Other, after_failure=[bad, late], name="alarm")
    flow.enqueue()
    run_jobs()
    assert states(flow)["callback"] == "waiting"
    scripted("test.work", lambda job: None)
    assert bad.id
    assert replay([bad.id]).changed == [bad.id]
    clock.step(700)
    run_jobs()
    assert states(flow) == {
        "bad": "completed", "late": "completed", "callback": "completed", "alarm": "skipped",
    }  # fmt: skip


def test_a_child_that_was_passed_waits_for_a_replayed_parent(run_jobs, clock, scripted) -> None:
    """The newest parent is watched first; it fails, and is replayed when the child watches on."""
    flow = NewFlow("passed")
    late, bad = flow.add(Working, delay=600, name="late"), flow.add(Working, FAILS, name="bad")
    child = flow.add(Other, after=[late, bad], name="callback")
    flow.enqueue()
    run_jobs()
    assert Job.objects.get(pk=child.id).after_id == late.id
    assert bad.id
    replay([bad.id])
    scripted("test.work", lambda job: None)
    Job.objects.filter(pk=bad.id).update(due_at=Job.objects.get(pk=late.id).due_at)
    clock.step(601)
    (job,) = [each for each in claimed("test.work") if each.id == late.id]
    settle.settle([Verdict(job, State.COMPLETED)])
    assert Job.objects.get(pk=child.id).after_id == bad.id
    clock.step(120)
    rescue.rescue()
    clock.step(120)
    run_jobs()
    assert set(states(flow).values()) == {"completed"}


def test_a_cancelled_parent_cancels_and_a_retry_of_the_flow_runs_all(run_jobs) -> None:
    flow = with_callback()
    parent = flow.jobs["parent-1"].id
    assert parent
    cancel([parent])
    run_jobs()
    assert states(flow)["callback"] == "cancelled"
    assert status(row_of(flow)).state == FlowState.WITH_FAILURES
    retry_flow(row_of(flow), "me")
    run_jobs()
    assert status(row_of(flow)).state == FlowState.COMPLETED


def test_a_parent_whose_worker_is_lost_is_rescued(run_jobs, clock) -> None:
    flow = with_callback()
    assert len(claimed("test.work")) == 2
    clock.step(130)
    assert rescue.rescue() == 2
    clock.step(130)
    run_jobs()
    assert set(states(flow).values()) == {"completed"}
    assert Effect.objects.filter(handler="test.other").count() == 1


def test_a_parent_that_loses_every_worker_fails_and_the_alarm_runs(run_jobs, clock) -> None:
    flow = NewFlow("poison")
    flow.add(Other, after_failure=flow.add(Once, name="poison"), name="alarm")
    flow.enqueue()
    assert len(claimed("test.once")) == 1
    clock.step(130)
    rescue.rescue()
    run_jobs()
    assert states(flow) == {"poison": "failed", "alarm": "completed"}


def test_a_parent_whose_handler_is_gone_fails_and_decides_its_children(run_jobs, clock) -> None:
    flow = with_callback()
    Job.objects.filter(pk=flow.jobs["parent-1"].id).update(handler="test.gone")
    run_jobs()
    assert states(flow)["callback"] == "waiting"
    Queue.objects.create(name="test.gone", retired_at="2026-01-01T00:00Z")
    clock.step(700)
    sweep.sweep(["jobs.unknown_handler"])
    clock.step(20)
    sweep.sweep(["jobs.waits_for_finished"])
    assert states(flow) == {"parent-1": "failed", "parent-2": "completed", "callback": "cancelled"}


def test_a_callback_that_fails_is_tried_again_and_ends_once(run_jobs, clock, scripted) -> None:
    calls: list[int] = []

    def fails_at_first(job) -> None:
        calls.append(job.attempt)
        if job.attempt == 1:
            raise RuntimeError("at first")

    scripted("test.other", fails_at_first)
    flow = with_callback()
    run_jobs()
    assert states(flow)["callback"] == "pending"
    clock.step(120)
    run_jobs()
    clock.step(5000)
    sweep.sweep()
    run_jobs()
    assert calls == [1, 2]
    assert set(states(flow).values()) == {"completed"}


def test_a_callback_after_a_parent_that_moved_to_the_history_and_one_of_another_flow(
    run_jobs, clock
) -> None:
    old = enqueue(Working)
    run_jobs()
    other = NewFlow("other")
    late = other.add(Working, delay=60)
    other.enqueue()
    flow = NewFlow("mixed")
    flow.add(Other, after=[old, late], name="after both")
    flow.add(Other, after=old, after_failure=late, name="alarm")
    flow.enqueue()
    assert Job.objects.get(pk=old).done_on is not None
    clock.step(61)
    run_jobs()
    assert states(flow) == {"after both": "completed", "alarm": "skipped"}
    assert not findings()


# --- crashes --------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sign", [1, -1], ids=["the worker dies", "its connection is cut"])
def test_a_worker_that_is_lost_at_any_statement(sign, run_jobs, clock, ten_to_a_claim) -> None:
    """Between the end of the last parent and the release of the callback, too: there the sweeper
    releases it."""
    released_by_sweeper = 0
    for statement in range(1, 13):
        flow = with_callback()
        with dying(sign * statement):
            run_jobs("test.work")
        ended = [state for name, state in states(flow).items() if name != "callback"]
        if set(ended) == {"completed"} and states(flow)["callback"] == "waiting":
            clock.step(11)
            (run,) = sweep.sweep(["jobs.waits_for_finished"])
            assert run.repaired == 1
            assert states(flow)["callback"] == "pending"
            released_by_sweeper += 1
        clock.step(130)
        rescue.rescue()
        clock.step(400)
        sweep.sweep(["jobs.waits_for_finished"])
        run_jobs()
        assert set(states(flow).values()) == {"completed"}, statement
        callback = flow.jobs["callback"].id
        assert Effect.objects.filter(job_id=callback).count() == 1, statement
    assert released_by_sweeper >= 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", [1, 2, 3])
def test_a_connection_cut_while_the_child_passes_to_the_next_parent(
    statement, run_jobs, clock
) -> None:
    """The newest parent ends first, and the child then waits for the older one. The worker goes on:
    an error after the commit would be taken for one of the settlement."""
    flow = NewFlow("passes on")
    parents = [flow.add(Working, delay=600), flow.add(Working)]
    flow.add(Other, after=parents, name="callback")
    flow.enqueue()
    (job,) = claimed("test.work")
    with dying(-statement):
        settle.settle([Verdict(job, State.COMPLETED)])
    assert states(flow)["work-2"] == "completed"
    clock.step(700)
    sweep.sweep(["jobs.waits_for_finished"])
    run_jobs()
    assert set(states(flow).values()) == {"completed"}


def test_a_paused_flow_decides_nothing_until_it_is_resumed(run_jobs) -> None:
    flow = with_callback()
    jobs = claimed("test.work")
    pause_flow(row_of(flow), "me")
    settle.settle([Verdict(job, State.COMPLETED) for job in jobs])
    assert states(flow)["callback"] == "waiting"
    assert resume_flow(row_of(flow), "me") == 1
    run_jobs()
    assert set(states(flow).values()) == {"completed"}


@pytest.mark.django_db(transaction=True)
def test_a_child_that_a_transaction_locks_blocks_no_parent(clock) -> None:
    flow = with_callback()
    child = flow.jobs["callback"].id
    jobs = claimed("test.work")
    with another_transaction("SELECT 1 FROM tailrace_jobs_live WHERE id = %s FOR UPDATE", child):
        ended = settle.settle([Verdict(job, State.COMPLETED) for job in jobs])
        assert set(ended.values()) == {"completed"}
        assert states(flow)["callback"] == "waiting"
        clock.step(20)
        (run,) = sweep.sweep(["jobs.waits_for_finished"])
        assert (run.outcome, run.repaired) == ("checked", 0)
    clock.step(20)
    sweep.sweep(["jobs.waits_for_finished"])
    assert states(flow)["callback"] == "pending"


# --- deadlines ------------------------------------------------------------------------------------


def overdue(clock) -> None:
    clock.step(3700)
    (run,) = sweep.sweep(["flows.deadline_passed"])
    assert (run.outcome, run.found, run.repaired) == ("checked", 1, 1)


def test_a_deadline_that_passes_cancels_what_is_unfinished(run_jobs, clock) -> None:
    flow = with_callback(None, RETRY | {"seconds": 86_400}, deadline=timedelta(hours=1))
    run_jobs()
    overdue(clock)
    assert states(flow) == {
        "parent-1": "completed",
        "parent-2": "cancelled",
        "callback": "cancelled",
    }
    errors = Job.objects.filter(flow_id=flow.id, state="cancelled").values_list("error", flat=True)
    assert set(errors) == {OVERDUE}
    assert status(row_of(flow)).state == FlowState.OVERDUE
    assert not findings()


def test_a_deadline_lets_clean_up_jobs_run(run_jobs, clock) -> None:
    flow = NewFlow("clean-up", deadline=timedelta(hours=1))
    work = flow.add(Working, RETRY | {"seconds": 86_400}, name="work")
    flow.add(Other, after_failure=work, name="on failure")
    last = flow.add(Other, after_end=work, name="at the end")
    flow.add(Other, after=last, name="after the end")
    flow.enqueue()
    run_jobs()
    overdue(clock)
    run_jobs()
    assert states(flow) == {
        "work": "cancelled", "on failure": "completed", "at the end": "completed",
        "after the end": "cancelled",
    }  # fmt: skip


def test_a_deadline_ends_a_paused_flow(run_jobs, clock) -> None:
    flow = with_callback(deadline=timedelta(hours=1))
    pause_flow(row_of(flow), "me")
    overdue(clock)
    assert set(states(flow).values()) == {"cancelled"}
    assert row_of(flow).paused_at is None
    assert status(row_of(flow)).state == FlowState.OVERDUE


def test_a_deadline_that_was_met_changes_nothing(run_jobs, clock) -> None:
    flow = with_callback(deadline=timedelta(hours=1))
    run_jobs()
    overdue(clock)
    assert set(states(flow).values()) == {"completed"}
    assert row_of(flow).deadline_met
    assert status(row_of(flow)).state == FlowState.COMPLETED


def test_a_running_job_of_an_overdue_flow_is_asked_to_stop(clock) -> None:
    flow = with_callback(deadline=timedelta(hours=1))
    (first, _second) = claimed("test.work")
    overdue(clock)
    assert Job.objects.get(pk=first.id).cancel_requested
    assert states(flow)["callback"] == "cancelled"


def test_a_flow_retried_after_its_deadline_is_not_cancelled_again(run_jobs, clock) -> None:
    flow = with_callback(deadline=timedelta(hours=1))
    overdue(clock)
    retry_flow(row_of(flow), "me")
    clock.step(3700)
    sweep.sweep(["flows.deadline_passed"])
    run_jobs()
    assert set(states(flow).values()) == {"completed"}


# --- invariants are silent on right rows ----------------------------------------------------------


def test_right_rows_are_no_findings(run_jobs, clock) -> None:
    done = with_callback()
    with_callback(FAILS, None)
    run_jobs()
    with_callback(RETRY, None, deadline=timedelta(hours=1))
    run_jobs()
    pause_flow(row_of(with_callback()), "me")
    cancelled = with_callback()
    cancel_flow(row_of(cancelled), "me")
    enqueue(Other, after=enqueue(Working, delay=600))
    clock.step(30)
    assert findings() == {}
    assert [rule.name for rule in RULES for _violation in scan([rule])] == []
    assert set(states(done).values()) == {"completed"}
