"""run: every way in which a handler's call can end, one job at a time."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from jobs.claimed import ClaimedJob
from jobs.drain import drain
from jobs.enqueue import enqueue, enqueue_many
from jobs.handler import Backoff
from jobs.models import Attempt, Job
from jobs.outcomes import Cancel, Permanent, Retry, Skip, Snooze
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Working, cut_own_connection

pytestmark = pytest.mark.django_db


@pytest.fixture
def end(scripted, run_jobs):
    """Return `end(call)`: enqueue one job, run it with `call`, and give it as it stands then."""

    def run(call: Any) -> Job:
        scripted("test.work", call)
        id = enqueue(Working)
        run_and_settle(claimed("test.work"))
        return Job.objects.get(pk=id)

    return run


def throw(error: BaseException) -> Any:
    def call(job: ClaimedJob) -> None:
        raise error

    return call


def test_returning_completes_the_job_and_records_the_result(end) -> None:
    job = end(lambda job: {"sent": 3, "to": ["é"]})
    assert (job.state, job.result, job.error) == ("completed", {"sent": 3, "to": ["é"]}, "")
    assert job.finished_at is not None
    assert job.lease_until is None
    assert not Attempt.objects.exists()


def test_no_result_is_none(end) -> None:
    assert end(lambda job: None).result is None


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({1, 2}, "set that is not JSON"),
        (object(), "object that is not JSON"),
        (float("nan"), "not JSON"),
        ("a\0b", "NUL"),
        (["a\ud800b"], "surrogate"),
        ({"k\0": 1}, "NUL"),
        (10**5000, "not JSON"),
        ("x" * 70_000, "70002 bytes"),
    ],
    ids=["set", "object", "nan", "nul", "surrogate", "key", "digits", "size"],
)
def test_a_result_that_cannot_be_stored_fails_the_job_with_that_reason(end, result, said) -> None:
    job = end(lambda job: result)
    assert (job.state, job.attempt) == ("failed", 1)
    assert said in job.error


def test_a_backslash_in_a_result_is_no_nul(end) -> None:
    assert end(lambda job: "a\\u0000b").result == "a\\u0000b"


def test_an_exception_is_retried_by_backoff_with_jitter(end, monkeypatch, clock) -> None:
    monkeypatch.setattr(Working, "backoff", Backoff(60, 300))
    job = end(throw(ValueError("no")))
    assert (job.state, job.attempt, job.error) == ("pending", 1, "no")
    assert 48 <= (job.due_at - clock.now()).total_seconds() <= 72.5
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.error_class) == ("retried", "builtins.ValueError")
    assert (attempt.claim_no, attempt.message) == (1, "no")
    assert "in call" in attempt.traceback
    clock.step(73)
    drain("test.work")
    job.refresh_from_db()
    assert 240 <= (job.due_at - clock.now()).total_seconds() <= 360.5


def test_the_last_attempt_fails(end, clock) -> None:
    job = end(throw(ValueError("no")))
    for _ in range(5):
        clock.step(400)
        drain("test.work")
    job.refresh_from_db()
    assert (job.state, job.attempt, job.error) == ("failed", 3, "no")
    outcomes = Attempt.objects.order_by("id").values_list("outcome", flat=True)
    assert list(outcomes) == ["retried", "retried", "failed"]


def test_backoff_repeats_its_last_wait() -> None:
    waits = Backoff(10, 20, jitter=0)
    assert [waits.after(attempt) for attempt in (0, 1, 2, 3, 99)] == [10, 10, 20, 20, 20]
    spread = {Backoff(100).after(1) for _ in range(200)}
    assert min(spread) >= 80
    assert max(spread) <= 120
    assert len(spread) > 100


@pytest.mark.parametrize("after", [0, 7, 90_000])
def test_a_retry_says_when(end, clock, after: int) -> None:
    job = end(throw(Retry("later", after=after)))
    assert (job.state, job.error) == ("pending", "later")
    assert abs((job.due_at - clock.now()).total_seconds() - after) < 2


@pytest.mark.parametrize("after", [float("inf"), float("nan"), 1e300, -5])
def test_a_retry_at_an_absurd_time_is_bounded(end, clock, after: float) -> None:
    job = end(throw(Retry("later", after=after)))
    assert job.state == "pending"
    assert job.due_at - clock.now() < timedelta(days=367)


def test_permanent_fails_at_once(end) -> None:
    job = end(throw(Permanent("gone")))
    assert (job.state, job.attempt, job.error) == ("failed", 1, "gone")
    assert Attempt.objects.get().outcome == "failed"


def test_skip_counts_as_done_with_its_reason(end) -> None:
    job = end(throw(Skip("nobody listens")))
    assert (job.state, job.error) == ("skipped", "nobody listens")
    assert not Attempt.objects.exists()


def test_cancel_ends_in_cancelled(end) -> None:
    assert end(throw(Cancel("not wanted"))).state == "cancelled"


def test_a_snooze_charges_no_attempt_however_often(end, clock) -> None:
    job = end(throw(Snooze("closed", seconds=100)))
    for _ in range(5):
        assert (job.state, job.attempt) == ("pending", 0)
        assert 95 < (job.due_at - clock.now()).total_seconds() < 101
        clock.step(101)
        drain("test.work")
        job.refresh_from_db()
    assert job.claim_no == 6 == Attempt.objects.filter(outcome="snoozed").count()


def test_a_snooze_until_a_time(end, clock) -> None:
    job = end(lambda job: throw(Snooze(until=clock.now() + timedelta(hours=1)))(job))
    assert 3590 < (job.due_at - clock.now()).total_seconds() < 3601
    assert end(throw(Snooze(until=clock.now() - timedelta(hours=1)))).state == "pending"
    with pytest.raises(TypeError, match="either"):
        Snooze("both", seconds=1, until=clock.now())


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a\0b\ud800"),
        Skip("a\0b\ud800"),
        Cancel("a\0b\ud800"),
        Permanent("a\0b\ud800"),
        Snooze("a\0b", seconds=1),
        ValueError("x" * 1_000_000),
        Unspeakable(),
    ],
    ids=["error", "skip", "cancel", "permanent", "snooze", "long", "unspeakable"],
)
def test_whatever_an_error_says_the_job_is_settled(end, error) -> None:
    job = end(throw(error))
    assert job.state != "running"
    assert "\0" not in job.error
    assert len(job.error) <= 2000
    assert all(len(row.traceback) <= 8192 for row in Attempt.objects.all())


def test_a_payload_that_does_not_validate_any_more_fails_at_once_and_alone(run_jobs) -> None:
    made = [enqueue(Working) for _ in range(3)]
    Job.objects.filter(pk=made[1]).update(payload={"do": 7})
    run_jobs("test.work")
    states = dict(Job.objects.values_list("id", "state"))
    assert states == {made[0]: "completed", made[1]: "failed", made[2]: "completed"}
    job = Job.objects.get(pk=made[1])
    assert job.attempt == 1
    assert "payload does not validate: payload.do:" in job.error


def test_what_has_not_begun_when_the_slice_is_over_is_handed_back(scripted, settings) -> None:
    settings.JOBS_DRAIN_SECONDS = 0.1
    scripted("test.work", lambda job: time.sleep(0.06))
    enqueue_many(Working, [{}] * 10)
    drain("test.work")
    handed_back = Job.objects.pending()
    assert 1 <= handed_back.count() <= 9
    assert set(handed_back.values_list("attempt", "claim_no", "error")) == {(0, 1, "")}
    assert not Attempt.objects.exists()


def test_a_time_limit_interrupts_a_call_that_hangs(end, monkeypatch) -> None:
    monkeypatch.setattr(Working, "time_limit", 0.2)
    began = time.monotonic()

    def hang(job: ClaimedJob) -> None:
        try:
            time.sleep(30)
        except Exception:
            pytest.fail("an `except Exception` of a handler must not swallow the limit")

    job = end(hang)
    assert time.monotonic() - began < 5
    assert job.state == "pending"
    assert job.error == "took longer than its time limit of 0.2 s"


@pytest.mark.django_db(transaction=True)
def test_a_time_limit_interrupts_a_statement_of_the_database(end, monkeypatch) -> None:
    monkeypatch.setattr(Working, "time_limit", 0.3)

    def hang(job: ClaimedJob) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(30)")

    began = time.monotonic()
    job = end(hang)
    assert time.monotonic() - began < 5
    assert (job.state, job.error) == ("pending", "took longer than its time limit of 0.3 s")


def broken_transaction(job: ClaimedJob) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        try:
            cursor.execute("SELECT 1/0")
        except Exception:
            cursor.execute("SELECT 1")


def open_transaction(job: ClaimedJob) -> None:
    connection.set_autocommit(False)
    Job.objects.filter(pk=job.id).update(progress_note="uncommitted")


def begun_by_hand(job: ClaimedJob) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE jobs_job SET progress_note = 'uncommitted' WHERE id = %s", [job.id])


def closed(job: ClaimedJob) -> None:
    connection.close()


def cut(job: ClaimedJob) -> None:
    cut_own_connection()


def cut_in_silence(job: ClaimedJob) -> None:
    try:
        cut_own_connection()
    except Exception:
        return


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "harm", [broken_transaction, open_transaction, begun_by_hand, closed, cut, cut_in_silence]
)
def test_a_handler_that_breaks_its_connection_harms_only_itself(scripted, run_jobs, harm) -> None:
    made = [enqueue(Working) for _ in range(5)]
    scripted("test.work", lambda job: harm(job) if job.id == made[2] else None)
    drain("test.work")
    connection.close()
    states = dict(Job.objects.values_list("id", "state"))
    assert [states[id] for id in made if id != made[2]] == ["completed"] * 4
    left_open = harm in (open_transaction, begun_by_hand)
    assert states[made[2]] in (("failed",) if left_open else ("pending", "completed"))
    assert not Job.objects.exclude(progress_note="").exists()
    assert set(Job.objects.values_list("claim_no", flat=True)) == {1}


def test_a_failed_attempt_is_told_with_event_job_and_handler(scripted, monkeypatch) -> None:
    told = []
    monkeypatch.setattr("jobs.report.reporters", lambda: (crash, told.append))

    def crash(failure: object) -> None:
        raise RuntimeError("a reporter that fails hinders nobody")

    scripted("test.work", throw(ValueError("no")))
    id = enqueue(Working)
    drain("test.work")
    (failure,) = told
    assert (failure.handler, failure.job_id, failure.attempt) == ("test.work", id, 1)
    assert (failure.final, failure.error_class) == (False, "builtins.ValueError")
    assert failure.retry_in > 0
    assert "payload" not in json.dumps(list(failure.__dataclass_fields__))


def test_progress_and_a_request_to_cancel_are_seen_by_the_handler(scripted, run_jobs) -> None:
    def work(job: ClaimedJob) -> None:
        job.progress(3, 10, "third")
        job.check_cancelled()
        Job.objects.filter(pk=job.id).update(cancel_requested=True)
        job.check_cancelled()
        pytest.fail("the request was not seen")

    scripted("test.work", work)
    enqueue(Working)
    run_jobs("test.work")
    job = Job.objects.get()
    assert (job.progress_done, job.progress_total, job.progress_note) == (3, 10, "third")
    assert (job.state, job.error) == ("cancelled", "cancelled while running")
