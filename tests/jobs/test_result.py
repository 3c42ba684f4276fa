"""`result(job_id)`: what it returns and raises, and how often it looks."""

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Cancel, Permanent, Skip
from tailrace.jobs.models import Job
from tailrace.jobs.operations.job_result import (
    _READ,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    JobFailed,
    NotFinished,
    ResultNotStored,
    UnknownJob,
    poll_times,
    result,
)
from tests.kit import at_once
from tests.sandbox.handlers import Requested

pytestmark = pytest.mark.django_db


def requested() -> int:
    id = enqueue(Requested, {"title": "March"})
    assert id is not None
    return id


def test_the_result_of_a_completed_job(run_jobs) -> None:
    id = requested()
    run_jobs(Requested.name)
    assert result(id) == {"title": "March"}


def _raise(error: Exception) -> None:
    raise error


def test_a_skipped_job_has_none(run_jobs, scripted) -> None:
    scripted(Requested.name, lambda job: _raise(Skip("nothing to report")))
    id = requested()
    run_jobs(Requested.name)
    assert result(id) is None


@pytest.mark.parametrize(
    ("error", "state"), [(Permanent("no paper"), "failed"), (Cancel("no paper"), "cancelled")]
)
def test_a_job_that_failed_raises_its_error(run_jobs, scripted, error, state) -> None:
    scripted(Requested.name, lambda job: _raise(error))
    id = requested()
    run_jobs(Requested.name)
    with pytest.raises(JobFailed, match=f"job {id} of test.requested is {state}: .*no paper") as it:
        result(id)
    assert (it.value.state, it.value.job_id) == (state, id)


def test_a_result_that_could_not_be_stored(run_jobs, scripted) -> None:
    scripted(Requested.name, lambda job: "x" * 70_000)
    id = requested()
    run_jobs(Requested.name)
    with pytest.raises(ResultNotStored, match="is completed: "):
        result(id)


def test_a_job_that_does_not_exist() -> None:
    with pytest.raises(UnknownJob, match="there is no job 999"):
        result(999)


def test_within_a_transaction_it_does_not_wait() -> None:
    id = requested()
    with transaction.atomic(), pytest.raises(RuntimeError, match="outside of transactions"):
        result(id)


@pytest.mark.django_db(transaction=True)
def test_it_waits_no_longer_than_the_timeout() -> None:
    id = requested()
    with CaptureQueriesContext(connection) as captured, pytest.raises(NotFinished, match="pending"):
        result(id, timeout=0.1)
    assert len(captured) <= 6


@pytest.mark.django_db(transaction=True)
def test_it_wakes_up_when_the_job_is_done() -> None:
    id = requested()
    assert at_once(2, lambda number: drain(Requested.name) if number else result(id)) == [
        {"title": "March"}, 1,
    ]  # fmt: skip


def test_it_looks_less_and_less_often() -> None:
    time, pauses = [0.0], []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        time[0] += seconds

    count = sum(1 for _ in poll_times(60, now=lambda: time[0], sleep=sleep))
    assert pauses[0] == FIRST_PAUSE
    assert max(pauses) == LONGEST_PAUSE
    assert sum(pauses) == pytest.approx(60)
    assert count == len(pauses) + 1 < 140, "once right away, and once when time is up"


def test_a_look_reads_one_row_by_its_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO tailrace_jobs_job (handler, routing_key, state, priority, lane, attempt,
                 claim_no, worker, isolate, progress_note, error, cancel_requested)
               SELECT 'x', '', 'completed', 1, '', 0, 0, '', false, '', '', false
               FROM generate_series(1, 2000)"""
        )
        cursor.execute("ANALYZE tailrace_jobs_job")
        cursor.execute("EXPLAIN " + _READ, {"id": Job.objects.first().pk})
        assert "Index Scan" in "\n".join(row[0] for row in cursor.fetchall())
