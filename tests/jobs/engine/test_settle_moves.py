"""A settlement moves what is over to the partition of its day, and loses nothing on the way."""

import json
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.db.query import database_now, execute, query
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.engine.settling.settle_sql import finish_sql
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Cancel, ClaimedJob, Retry, Skip
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.models.log_lines import LogLines
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.runtime import job_log
from tailrace.jobs.runtime.states import State
from tests.kit import (
    another_transaction,
    at_once,
    claimed,
    run_and_settle,
    sessions_that_wait,
    wait_until,
)
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db

AT_THE_END = {
    "state",
    "result",
    "error",
    "finished_at",
    "lease_until",
    "call_after",
    "call_took",
    "done_on",
}


def columns(id: int) -> dict[str, Any]:
    [(row,)] = query("SELECT to_jsonb(j)::text FROM tailrace_jobs_job j WHERE id = %(id)s", id=id)
    return dict(json.loads(row))


def is_live(id: int) -> bool:
    return bool(query("SELECT 1 FROM tailrace_jobs_live WHERE id = %(id)s", id=id))


def today() -> date:
    return database_now().date()


def completed(*jobs: ClaimedJob) -> list[Verdict]:
    return [Verdict(job, State.COMPLETED) for job in jobs]


def test_what_is_over_is_in_its_day_at_once_with_all_that_its_row_had(scripted) -> None:
    ends = {"result": {"rows": 3}, "skip": Skip("nothing to do"), "cancel": Cancel("asked to")}

    def work(job: ClaimedJob) -> Any:
        job.progress(1, 2, "half")
        end = ends[job.payload.note]
        if isinstance(end, BaseException):
            raise end
        return end

    scripted("test.work", work)
    ids = {
        note: enqueue(Working, {"note": note}, unique_key=note, priority=2, lane=f"of {note}")
        for note in ends
    }
    jobs = claimed("test.work")
    before = {id: columns(id) for id in ids.values()}
    run_and_settle(jobs)
    rows = {note: columns(id) for note, id in ids.items()}
    assert [(row["state"], row["result"], row["error"]) for row in rows.values()] == [
        ("completed", {"rows": 3}, ""),
        ("skipped", None, "nothing to do"),
        ("cancelled", None, "asked to"),
    ]
    progress = {"progress_done", "progress_total", "progress_note"}
    for row in rows.values():
        assert not is_live(row["id"])
        assert row["done_on"] == str(today())
        assert row["lease_until"] is None
        changed = {name for name, value in before[row["id"]].items() if row[name] != value}
        assert changed <= AT_THE_END | progress
        assert (row["progress_done"], row["progress_note"]) == (1, "half")


def test_where_one_claim_of_a_batch_goes_on_all_of_it_stays(scripted) -> None:
    def work(job: ClaimedJob) -> None:
        if job.payload.note == "again":
            raise Retry("later")

    scripted("test.work", work)
    again, done = enqueue(Working, {"note": "again"}), enqueue(Working, {"note": "done"})
    run_and_settle(claimed("test.work"))
    assert Job.objects.get(pk=again).state == State.PENDING
    assert Job.objects.get(pk=done).state == State.COMPLETED
    assert is_live(done)
    assert Attempt.objects.get().job_id == again


def test_without_a_partition_a_job_ends_where_it_is(clock) -> None:
    id = enqueue(Working)
    clock.step(40 * 86_400)
    jobs = claimed("test.work")
    assert settle.table_of_today() is None
    assert settle.settle(completed(*jobs)) == {id: "completed"}
    assert is_live(id)


def test_that_there_is_no_partition_is_asked_once(clock) -> None:
    clock.step(40 * 86_400)
    for _ in range(3):
        enqueue(Working)
    with CaptureQueriesContext(connection) as captured:
        for _ in range(3):
            settle.settle(completed(*claimed("test.work", 1)))
    statements = [each["sql"] for each in captured.captured_queries]
    assert sum("to_regclass" in statement for statement in statements) == 1
    assert Job.objects.filter(state=State.COMPLETED).count() == 3


def test_a_column_that_was_added_meanwhile_is_not_lost() -> None:
    first, second = enqueue(Working), enqueue(Working)
    jobs = {job.id: job for job in claimed("test.work")}
    assert settle.table_of_today() is not None
    execute("ALTER TABLE tailrace_jobs_job ADD COLUMN weight int")
    execute("UPDATE tailrace_jobs_job SET weight = id")
    assert settle.settle(completed(jobs[first])) == {first: "completed"}
    assert is_live(first), "this process knew nothing of the column"
    assert settle.settle(completed(jobs[second])) == {second: "completed"}
    assert not is_live(second)
    assert [columns(id)["weight"] for id in (first, second)] == [first, second]


def test_a_day_that_has_ended_takes_nothing() -> None:
    enqueue(Working)
    [job] = claimed("test.work")
    table = settle.table_of_today()
    assert table is not None
    [(names,)] = query(
        "SELECT array_agg(attname::text) FROM pg_attribute"
        " WHERE attrelid = 'tailrace_jobs_live'::regclass AND attnum > 0 AND NOT attisdropped"
    )
    statement = finish_sql(settle.partition(today()), today() - timedelta(days=1), names)
    params = settle._params(completed(job))
    assert query(statement, attributes=table.attributes, **params) == []
    assert is_live(job.id)


@pytest.mark.django_db(transaction=True)
def test_a_partition_that_somebody_took_away_costs_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    id = enqueue(Working)
    jobs = claimed("test.work")
    assert settle.table_of_today() is not None
    execute(f"ALTER TABLE {settle.partition(today())} RENAME TO elsewhere")
    try:
        assert settle.settle(completed(*jobs)) == {id: "completed"}
    finally:
        execute(f"ALTER TABLE elsewhere RENAME TO {settle.partition(today())}")
    assert "settle.not_moved" in caplog.text
    assert is_live(id)


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_the_row_finds_the_job_finished() -> None:
    """An UPDATE that moved the row would have them fail with "tuple to be locked was already moved
    to another partition"."""
    for _ in range(20):
        id = enqueue(Working)
        assert id is not None
        jobs = claimed("test.work")

        def work(number: int, id: int = id, jobs: list[ClaimedJob] = jobs) -> Any:
            return cancel([id]) if number else settle.settle(completed(*jobs))

        states, result = at_once(2, work)
        assert states == {id: "completed"}
        assert result.stop_requested == [id] or result.refused == {id: "it is already finished"}
        assert Job.objects.get(pk=id).state == State.COMPLETED


@pytest.mark.django_db(transaction=True)
def test_a_settlement_waits_for_a_row_and_sees_what_was_written_to_it() -> None:
    id = enqueue(Working)
    jobs = claimed("test.work")
    with another_transaction(
        "UPDATE tailrace_jobs_live SET progress_note = 'late', has_dependents = true WHERE id = %s",
        id,
    ) as other:
        results = at_once(
            2,
            lambda number: (
                settle.settle(completed(*jobs))
                if number
                else (wait_until(sessions_that_wait), other.connection.commit())
            ),
        )
    assert results[1] == {id: "completed"}
    assert columns(id)["progress_note"] == "late"
    assert not is_live(id)


@pytest.mark.django_db(transaction=True)
def test_lines_that_are_written_after_the_end_are_kept(scripted) -> None:
    scripted("test.work", lambda job: job.log("the last word"))
    id = enqueue(Working)
    run_and_settle(claimed("test.work"))
    assert not is_live(id)
    job_log.flush()
    assert "the last word" in str(LogLines.objects.get(job=id).lines)
