"""Cancel, replay, retry, pause and resume: what they change and what they refuse."""

import pytest
from django.core.management import CommandError
from django.db import transaction

from tailrace.db import locks
from tailrace.db.query import execute, query
from tailrace.events.management.subcommands import call_subcommand
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Job, Queue
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.pause import pause, resume
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.runtime.states import FINISHED, LIVE, MOVES, REPLAYABLE, State
from tests.kit import at_once, claimed, held, run_and_settle
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def state(id: int | None) -> str:
    return Job.objects.get(pk=id).state


def test_a_pending_and_a_waiting_job_are_cancelled_at_once() -> None:
    parent = enqueue(Working)
    child = enqueue(Working, after=parent)
    assert cancel([parent], by="alice").changed == [parent]
    assert (state(parent), state(child)) == ("cancelled", "cancelled")
    assert Job.objects.get(pk=parent).error == "cancelled by alice"
    assert claimed("test.work") == []


def test_a_running_job_is_requested_to_stop() -> None:
    id = enqueue(Working)
    claimed("test.work")
    done = cancel([id])
    assert (done.changed, done.stop_requested, done.refused) == ([], [id], {})
    assert Job.objects.get(pk=id).cancel_requested
    assert state(id) == "running"


def test_a_job_that_ends_before_it_stops_is_completed() -> None:
    id = enqueue(Working)
    jobs = claimed("test.work")
    cancel([id])
    run_and_settle(jobs)
    assert state(id) == "completed"


@pytest.mark.parametrize("at", FINISHED)
def test_a_finished_job_is_not_cancelled(at: str) -> None:
    id = enqueue(Working)
    Job.objects.filter(pk=id).update(state=at)
    assert cancel([id]).refused == {id: "it is already finished"}
    assert state(id) == at


@pytest.mark.parametrize("at", REPLAYABLE)
def test_a_replay_gives_all_attempts_again(at: str, run_jobs) -> None:
    id = enqueue(Working, {"do": "permanent", "note": "x"})
    run_jobs("test.work")
    Job.objects.filter(pk=id).update(state=at, cancel_requested=True, isolate=True)
    assert replay([id]).changed == [id]
    job = Job.objects.get(pk=id)
    assert (job.state, job.attempt, job.error, job.result) == ("pending", 0, "", None)
    assert (job.cancel_requested, job.isolate, job.finished_at) == (False, False, None)
    assert job.claim_no == 1
    run_jobs("test.work")
    assert list(Attempt.objects.order_by("id").values_list("claim_no", flat=True)) == [1, 2]


@pytest.mark.parametrize("at", [*LIVE, State.COMPLETED])
def test_other_jobs_are_not_replayed(at: str) -> None:
    id = enqueue(Working)
    Job.objects.filter(pk=id).update(state=at)
    has_begun = at in ("running", "completed")
    assert replay([id, 10**9]).refused == {
        id: f"it is {at}" if has_begun else "it has not started",
        10**9: "there is no such job",
    }


def test_a_replay_whose_unique_key_is_taken_is_refused(run_jobs) -> None:
    old = enqueue(Working, {"do": "permanent", "note": "x"}, unique_key="k")
    run_jobs("test.work")
    enqueue(Working, unique_key="k")
    assert replay([old]).refused == {old: "an unstarted job has the same unique key"}


def test_of_two_jobs_with_one_unique_key_one_is_replayed(
    run_jobs,
) -> None:
    first = enqueue(Working, {"do": "permanent", "note": "x"}, unique_key="k")
    run_jobs("test.work")
    second = enqueue(Working, {"do": "permanent", "note": "x"}, unique_key="k")
    run_jobs("test.work")
    plain = enqueue(Working, {"do": "permanent", "note": "x"})
    like = enqueue(Working, {"do": "permanent", "note": "x"}, unique_key=str(plain))
    run_jobs("test.work")
    done = replay([first, second, plain, like])
    assert len(done.changed) == 3
    assert {plain, like} < set(done.changed)


def test_dependents_wait_again_after_a_replay(run_jobs) -> None:
    a = enqueue(Working, {"do": "permanent", "note": "x"})
    b = enqueue(Working, after=a)
    c = enqueue(Working, after=b)
    unwanted = enqueue(Working, after=a)
    cancel([unwanted], by="alice")
    run_jobs("test.work")
    Job.objects.filter(pk=a).update(payload={})
    assert replay([a]).changed == [a, b, c]
    assert [state(id) for id in (a, b, c, unwanted)] == [
        "pending",
        "waiting",
        "waiting",
        "cancelled",
    ]
    run_jobs("test.work")
    assert [state(id) for id in (a, b, c)] == ["completed"] * 3


def test_a_scheduled_retry_is_made_due_now(run_jobs) -> None:
    id = enqueue(Working, {"do": "retry", "seconds": 3600, "note": "x"})
    run_jobs("test.work")
    other = enqueue(Working)
    done = retry_now([id, other])
    assert done.changed == [id]
    assert done.refused == {
        other: "it is not scheduled for later, or another transaction has locked it"
    }
    assert len(claimed("test.work")) == 2


def test_pause_and_resume_return_whether_they_changed() -> None:
    assert pause("test.work", by="alice")
    assert not pause("test.work", by="bob")
    queue = Queue.objects.get(pk="test.work")
    assert (queue.paused, queue.paused_by) == (True, "alice")
    enqueue(Working)
    assert claimed("test.work") == []
    assert resume("test.work", by="bob")
    assert not resume("test.work", by="bob")
    assert len(claimed("test.work")) == 1


def test_no_move_leads_out_of_completed() -> None:
    assert set(MOVES) == set(State)
    assert MOVES[State.COMPLETED] == frozenset()
    assert all(State.COMPLETED not in MOVES[at] for at in State if at != State.RUNNING)


@pytest.mark.django_db(transaction=True)
def test_a_concurrent_cancel_and_claim_never_both_win() -> None:
    ids = [enqueue(Working) for _ in range(60)]

    def work(number: int) -> list[int]:
        if number == 0:
            return [id for n in ids for id in cancel([n]).changed]
        mine = []
        while jobs := claimed("test.work", 2):
            mine += [job.id for job in jobs]
        return mine

    cancelled, *taken = at_once(4, work)
    flat = [id for mine in taken for id in mine]
    assert sorted(cancelled + flat) == ids
    assert {state(id) for id in cancelled} <= {"cancelled"}
    assert {state(id) for id in flat} <= {"running"}


@pytest.mark.django_db(transaction=True)
def test_concurrent_replays_replay_once() -> None:
    id = enqueue(Working)
    cancel([id])
    answers = at_once(6, lambda _: replay([id]).changed)
    assert sum(map(len, answers)) == 1


# --- rows that others hold ------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_retry_passes_over_jobs_that_are_locked() -> None:
    locked, free = (enqueue(Working, delay=3600) for _ in range(2))
    with held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", locked):
        done = at_once(1, lambda _: retry_now([locked, free]), seconds=30)[0]
    assert (done.changed, list(done.refused)) == ([free], [locked])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("operation", [cancel, replay])
def test_an_operation_gives_up_on_a_job_that_is_locked_for_long(operation, monkeypatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    ids = [enqueue(Working) for _ in range(3)]
    with (
        held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", ids[1]),
        pytest.raises(locks.Blocked, match=f"the rows of 3 jobs from {ids[0]} to {ids[2]}"),
    ):
        at_once(1, lambda _: operation(ids), seconds=30)
    assert set(operation(ids).changed) == (set(ids) if operation is cancel else set())


QUEUE_ROW = "SELECT 1 FROM tailrace_jobs_queue WHERE name = 'test.work' FOR UPDATE"
ACTIVITY_ROW = "SELECT 1 FROM tailrace_jobs_queueactivity WHERE name = 'test.work' FOR UPDATE"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("operation", "lock", "row"),
    [
        (pause, QUEUE_ROW, "queue"),
        (pause, "LOCK TABLE tailrace_jobs_queue IN SHARE ROW EXCLUSIVE MODE", "queue"),
        (resume, QUEUE_ROW, "queue"),
        (resume, ACTIVITY_ROW, "queue activity"),
    ],
)
def test_a_pause_gives_up_on_a_queue_that_is_locked_for_long(
    operation, lock: str, row: str, monkeypatch
) -> None:
    """It waited until the other transaction ended."""
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    if operation is resume:
        pause("test.work", "alice")
    was = Queue.objects.get(pk="test.work").paused_at
    with held(lock) as session:
        message = rf"the row of {row} test\.work, held by database session {session} \(psql\)"
        with pytest.raises(locks.Blocked, match=message):
            at_once(1, lambda _: operation("test.work", "alice"), seconds=30)
    assert Queue.objects.get(pk="test.work").paused_at == was
    assert operation("test.work", "alice")


@pytest.mark.django_db(transaction=True)
def test_a_pause_restores_the_callers_lock_timeout() -> None:
    with transaction.atomic():
        execute("SET LOCAL lock_timeout = '7s'")
        pause("test.work", "alice")
        assert query("SHOW lock_timeout") == [("7s",)]


@pytest.mark.django_db(transaction=True)
def test_the_command_says_who_holds_a_queue(monkeypatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    with (
        held(QUEUE_ROW) as session,
        pytest.raises(CommandError, match=f"test.work could not be paused: .* session {session} "),
    ):
        at_once(1, lambda _: call_subcommand("queues", "--pause", "test.work"), seconds=30)


@pytest.mark.django_db(transaction=True)
def test_an_operator_reads_that_a_job_is_locked(monkeypatch, capsys) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    id = enqueue(Working)
    with held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", id):
        at_once(1, lambda _: call_subcommand("jobs", "cancel", id), seconds=30)
    assert "was not changed: another open transaction has locked this" in capsys.readouterr().out
