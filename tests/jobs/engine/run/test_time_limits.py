"""A call that takes too long is interrupted, and jobs that it left no time for are handed back."""

import time

import pytest
from django.db import connection, transaction

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Attempt, Job
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def test_jobs_not_begun_when_time_is_up_are_handed_back(scripted, settings, ten_to_a_claim) -> None:
    settings.JOBS_DRAIN_SECONDS = 0.1
    scripted("test.work", lambda job: time.sleep(0.06))
    enqueue_many(Working, [{}] * 10)
    drain("test.work")
    handed_back = Job.objects.pending()
    assert 1 <= handed_back.count() <= 9
    assert set(handed_back.values_list("attempt", "claim_no", "error")) == {(0, 1, "")}
    assert not Attempt.objects.exists()


def test_a_time_limit_interrupts_a_call_that_hangs(run_one, monkeypatch) -> None:
    monkeypatch.setattr(Working, "time_limit", 0.2)
    ended = []

    def hang(job: ClaimedJob) -> None:
        try:
            time.sleep(30)
            ended.append(job)
        except Exception:
            pytest.fail("an `except Exception` of a handler must not swallow the limit")

    job = run_one(hang)
    assert ended == []
    assert job.state == "pending"
    assert job.error == "took longer than its time limit of 0.2 s"


@pytest.mark.django_db(transaction=True)
def test_a_time_limit_interrupts_a_statement_of_the_database(run_one, monkeypatch) -> None:
    monkeypatch.setattr(Working, "time_limit", 0.3)
    ended = []

    def hang(job: ClaimedJob) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(30)")
            ended.append(job)

    job = run_one(hang)
    assert ended == []
    assert (job.state, job.error) == ("pending", "took longer than its time limit of 0.3 s")
