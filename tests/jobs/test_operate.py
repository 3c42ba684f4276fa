"""operate: what an operator may do to jobs and queues, and what is refused."""

import pytest

from jobs import operate
from jobs.enqueue import enqueue
from jobs.models import Attempt, Job, Queue
from jobs.states import FINISHED, LIVE, MOVES, REPLAYABLE, State
from tests.kit import at_once, claimed, run_and_settle
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def state(id: int | None) -> str:
    return Job.objects.get(pk=id).state


def test_a_pending_and_a_waiting_job_are_cancelled_at_once() -> None:
    parent = enqueue(Working)
    child = enqueue(Working, after=parent)
    assert operate.cancel([parent], by="alice").ids == [parent]
    assert (state(parent), state(child)) == ("cancelled", "cancelled")
    assert Job.objects.get(pk=parent).error == "cancelled by alice"
    assert claimed("test.work") == []


def test_a_running_job_is_asked_to_stop() -> None:
    id = enqueue(Working)
    claimed("test.work")
    done = operate.cancel([id])
    assert (done.ids, done.asked, done.refused) == ([], [id], {})
    assert Job.objects.get(pk=id).cancel_requested
    assert state(id) == "running"


def test_a_job_that_ends_before_it_hears_of_a_cancellation_is_completed() -> None:
    id = enqueue(Working)
    jobs = claimed("test.work")
    operate.cancel([id])
    run_and_settle(jobs)
    assert state(id) == "completed"


@pytest.mark.parametrize("at", FINISHED)
def test_a_finished_job_is_not_cancelled(at: str) -> None:
    id = enqueue(Working)
    Job.objects.filter(pk=id).update(state=at)
    assert operate.cancel([id]).refused == {id: "it is finished already"}
    assert state(id) == at


@pytest.mark.parametrize("at", REPLAYABLE)
def test_a_job_that_did_not_complete_is_replayed_with_all_attempts(at: str, run_jobs) -> None:
    id = enqueue(Working, {"do": "permanent", "note": "x"})
    run_jobs("test.work")
    Job.objects.filter(pk=id).update(state=at, cancel_requested=True, isolate=True)
    assert operate.replay([id]).ids == [id]
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
    assert operate.replay([id, 10**9]).refused == {
        id: f"it is {at}",
        10**9: "there is no such job",
    }


def test_a_replay_whose_unique_key_is_taken_is_refused(run_jobs) -> None:
    old = enqueue(Working, {"do": "permanent", "note": "x"}, unique_key="k")
    run_jobs("test.work")
    enqueue(Working, unique_key="k")
    assert operate.replay([old]).refused == {old: "an unstarted job has its unique key"}


def test_of_two_with_one_unique_key_one_is_replayed_and_a_key_that_looks_like_an_id_is_none(
    run_jobs,
) -> None:
    first = enqueue(Working, {"do": "permanent", "note": "x"}, unique_key="k")
    run_jobs("test.work")
    second = enqueue(Working, {"do": "permanent", "note": "x"}, unique_key="k")
    run_jobs("test.work")
    plain = enqueue(Working, {"do": "permanent", "note": "x"})
    like = enqueue(Working, {"do": "permanent", "note": "x"}, unique_key=str(plain))
    run_jobs("test.work")
    done = operate.replay([first, second, plain, like])
    assert len(done.ids) == 3
    assert {plain, like} < set(done.ids)


def test_what_was_cancelled_because_of_a_failure_waits_again_after_a_replay(run_jobs) -> None:
    a = enqueue(Working, {"do": "permanent", "note": "x"})
    b = enqueue(Working, after=a)
    c = enqueue(Working, after=b)
    unwanted = enqueue(Working, after=a)
    operate.cancel([unwanted], by="alice")
    run_jobs("test.work")
    Job.objects.filter(pk=a).update(payload={})
    assert operate.replay([a]).ids == [a, b, c]
    assert [state(id) for id in (a, b, c, unwanted)] == [
        "pending",
        "waiting",
        "waiting",
        "cancelled",
    ]
    run_jobs("test.work")
    assert [state(id) for id in (a, b, c)] == ["completed"] * 3


def test_a_job_that_waits_for_its_retry_is_made_due_now(run_jobs) -> None:
    id = enqueue(Working, {"do": "retry", "seconds": 3600, "note": "x"})
    run_jobs("test.work")
    other = enqueue(Working)
    done = operate.retry_now([id, other])
    assert done.ids == [id]
    assert done.refused == {other: "it is not waiting for a later try"}
    assert len(claimed("test.work")) == 2


def test_pause_and_resume_say_whether_they_changed_anything() -> None:
    assert operate.pause("test.work", by="alice")
    assert not operate.pause("test.work", by="bob")
    queue = Queue.objects.get(pk="test.work")
    assert (queue.paused, queue.paused_by) == (True, "alice")
    enqueue(Working)
    assert claimed("test.work") == []
    assert operate.resume("test.work", by="bob")
    assert not operate.resume("test.work", by="bob")
    assert len(claimed("test.work")) == 1


def test_no_move_leads_out_of_completed_and_each_state_has_its_moves() -> None:
    assert set(MOVES) == set(State)
    assert MOVES[State.COMPLETED] == frozenset()
    assert all(State.COMPLETED not in MOVES[at] for at in State if at != State.RUNNING)


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_and_a_claim_at_once_never_both_win() -> None:
    ids = [enqueue(Working) for _ in range(60)]

    def work(number: int) -> list[int]:
        if number == 0:
            return [id for n in ids for id in operate.cancel([n]).ids]
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
def test_several_replays_at_once_replay_once() -> None:
    id = enqueue(Working)
    operate.cancel([id])
    answers = at_once(6, lambda _: operate.replay([id]).ids)
    assert sum(map(len, answers)) == 1
