"""A handler that breaks its connection harms no other job of its claim."""

import pytest
from django.db import connection, transaction

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job
from tests.sandbox.handlers import Working, cut_own_connection

pytestmark = pytest.mark.django_db


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
        cursor.execute(
            "UPDATE tailrace_jobs_job SET progress_note = 'uncommitted' WHERE id = %s", [job.id]
        )


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
    ids = [enqueue(Working) for _ in range(5)]
    scripted("test.work", lambda job: harm(job) if job.id == ids[2] else None)
    drain("test.work")
    connection.close()
    states = dict(Job.objects.values_list("id", "state"))
    assert [states[id] for id in ids if id != ids[2]] == ["completed"] * 4
    left_open = harm in (open_transaction, begun_by_hand)
    assert states[ids[2]] in (("failed",) if left_open else ("pending", "completed"))
    assert not Job.objects.exclude(progress_note="").exists()
    assert set(Job.objects.values_list("claim_no", flat=True)) == {1}
