"""Snoozes charge no attempt, and those that follow each other are one row."""

from datetime import timedelta

import pytest

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Snooze
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.platform.inspection.explain.time_spent import spans
from tests.jobs.engine.run.raising import raising
from tests.sandbox.handlers import Batch, Working

pytestmark = pytest.mark.django_db


def test_a_snooze_charges_no_attempt_however_often(run_one, clock) -> None:
    job = run_one(raising(Snooze("closed", seconds=100)))
    for _ in range(5):
        assert (job.state, job.attempt) == ("pending", 0)
        assert 40 < (job.due_at - clock.now()).total_seconds() < 101
        clock.step(101)
        drain("test.work")
        job.refresh_from_db()
    attempt = Attempt.objects.get()
    assert (job.claim_no, attempt.claim_no, attempt.summary) == (6, 6, "snoozed 6 times")


def test_two_hundred_snoozes_are_one_row_with_a_count(scripted, clock) -> None:
    reasons = iter(range(400))
    scripted("test.work", lambda job: raising(Snooze(f"closed {next(reasons)}", seconds=10))(job))
    id = enqueue(Working)
    began = Job.objects.get().created_at
    for _ in range(200):
        assert drain("test.work") == 1
        clock.step(11)
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.times, attempt.claim_no) == ("snoozed", 200, 200)
    assert attempt.message == "closed 199"
    assert (attempt.started_at - began).total_seconds() < 60
    assert (attempt.finished_at - attempt.started_at).total_seconds() > 199 * 11 - 1
    span = next(span for span in spans(Job.objects.get(pk=id)) if "200" in span.what)
    assert (span.what, span.why) == ("200 claims → end", "snoozed 200 times: closed 199")


def test_snoozes_before_and_after_a_failure_are_two_rows(scripted, clock) -> None:
    ends = [Snooze(seconds=1), Snooze(seconds=1), ValueError("no"), Snooze(seconds=1)]
    scripted("test.work", lambda job: raising(ends[job.claim_no - 1])(job))
    enqueue(Working)
    for _ in ends:
        drain("test.work")
        clock.step(90)
    rows = Attempt.objects.order_by("claim_no").values_list("claim_no", "outcome", "times")
    assert list(rows) == [(2, "snoozed", 2), (3, "retried", 1), (4, "snoozed", 1)]


def test_snoozes_of_one_batch_are_counted_for_each_job(scripted, clock) -> None:
    scripted("test.batch", lambda jobs: [job.snooze(seconds=1) for job in jobs] and None)
    for _ in range(3):
        enqueue(Batch)
        drain("test.batch")
        clock.step(2)
    rows = Attempt.objects.order_by("job_id").values_list("claim_no", "times")
    assert list(rows) == [(3, 3), (2, 2), (1, 1)]


def test_a_snooze_until_a_time(run_one, clock) -> None:
    job = run_one(lambda job: raising(Snooze(until=clock.now() + timedelta(hours=1)))(job))
    assert 3500 < (job.due_at - clock.now()).total_seconds() < 3601
    assert run_one(raising(Snooze(until=clock.now() - timedelta(hours=1)))).state == "pending"
    with pytest.raises(TypeError, match="either"):
        Snooze("both", seconds=1, until=clock.now())
