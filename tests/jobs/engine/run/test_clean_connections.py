"""After each call of a handler its connection is clean, however the call ended."""

import signal
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from psycopg import conninfo
from psycopg.pq import TransactionStatus

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob, Skip
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.testing.perform import work_off
from tests.kit import claimed, run_and_settle, verdicts_on
from tests.sandbox.handlers import Batch, Other, Working

pytestmark = pytest.mark.django_db(transaction=True)


def execute(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def begin() -> None:
    execute("BEGIN")
    execute("UPDATE tailrace_jobs_job SET progress_note = 'uncommitted'")


def begin_and_fail() -> None:
    begin()
    with pytest.raises(Exception, match="division"):
        execute("SELECT 1/0")


def begin_past_django() -> None:
    connection.ensure_connection()
    connection.connection.execute("BEGIN")


def autocommit_off() -> None:
    connection.set_autocommit(False)
    execute("UPDATE tailrace_jobs_job SET progress_note = 'uncommitted'")


def leak_atomic() -> None:
    transaction.atomic().__enter__()
    execute("UPDATE tailrace_jobs_job SET progress_note = 'uncommitted'")


def leak_two_atomics() -> None:
    leak_atomic()
    transaction.atomic().__enter__()


def leak_broken_atomic() -> None:
    leak_atomic()
    connection.close()


OPEN = [
    begin, begin_and_fail, begin_past_django, autocommit_off, leak_atomic, leak_two_atomics,
    leak_broken_atomic,
]  # fmt: skip
LEFT_OPEN = "test.work left a transaction open; its writes were rolled back"


def clean() -> bool:
    """Whether the default connection of this thread is as a new one."""
    assert not connection.in_atomic_block
    raw = connection.connection
    return connection.autocommit and (
        raw is None or raw.info.transaction_status == TransactionStatus.IDLE
    )


@pytest.mark.parametrize("leave", OPEN)
def test_a_call_that_leaves_a_transaction_open_fails(scripted, leave) -> None:
    bad = enqueue(Working)
    scripted("test.work", lambda job: leave() if job.id == bad else execute("SELECT 1") and None)
    innocent = enqueue(Working)
    work_off(["test.work"])
    assert clean()
    states = dict(Job.objects.values_list("id", "state"))
    assert states == {bad: "failed", innocent: "completed"}
    assert Job.objects.get(pk=bad).error == LEFT_OPEN
    assert not Job.objects.exclude(progress_note="").exists()


@pytest.mark.parametrize("leave", OPEN)
@pytest.mark.parametrize("error", [ValueError("no"), Skip("nothing")], ids=["error", "skip"])
def test_a_call_that_raises_in_its_transaction(scripted, leave, error) -> None:
    """The verdict is that of its error, and the next jobs, of any queue, are not affected."""
    bad = enqueue(Working)

    def work(job: ClaimedJob) -> None:
        if job.id == bad:
            leave()
            raise error
        execute("SELECT 1")

    scripted("test.work", work)
    innocent, other = enqueue(Working), enqueue(Other)
    work_off(["test.work", "test.other"])
    assert clean()
    rows = {id: row for id, *row in Job.objects.values_list("id", "state", "error", "claim_no")}
    state = "skipped" if isinstance(error, Skip) else "pending"
    assert rows[bad] == [state, str(error), 1]
    assert rows[innocent] == ["completed", "", 1] == rows[other]
    assert not Job.objects.exclude(progress_note="").exists()


@pytest.mark.parametrize("leave", OPEN)
def test_a_batch_that_leaves_a_transaction_open(scripted, leave) -> None:
    enqueue_many(Batch, [{}] * 4)
    bad = Job.objects.earliest("id").pk
    scripted("test.batch", lambda jobs: leave() if any(j.id == bad for j in jobs) else None)
    run_and_settle(claimed("test.batch"))
    assert clean()
    assert Job.objects.get(pk=bad).state == "failed"
    assert set(Job.objects.exclude(pk=bad).values_list("state", flat=True)) == {"completed"}


CHANGES = {
    "setting": ("SET application_name = 'left'", "SHOW application_name", "left"),
    "set_config": (
        "SELECT set_config('application_name', 'left', false)", "SHOW application_name", "left",
    ),
    "lock": (
        "SELECT pg_advisory_lock(4711)",
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()", 1,
    ),
    "temp": ("CREATE TEMP TABLE left_over (id int)", "SELECT to_regclass('left_over')::text",
             "left_over"),
    "listen": ("LISTEN left_over", "SELECT count(*) FROM pg_listening_channels()", 1),
    "cursor": (
        "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
        "SELECT count(*) FROM pg_cursors WHERE is_holdable", 1,
    ),
    "prepared": (
        "PREPARE left_over AS SELECT 1",
        "SELECT count(*) FROM pg_prepared_statements WHERE name = 'left_over'", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
def test_a_session_that_a_call_changed_is_replaced(scripted, change: str, raises: bool) -> None:
    statement, look, left = CHANGES[change]
    seen = []

    def work(job: ClaimedJob) -> None:
        if job.id == first:
            execute(statement)
            assert execute(look) == [(left,)], "the test itself"
            if raises:
                raise ValueError("no")
        else:
            seen.extend(execute(look))

    scripted("test.work", work)
    first, _second = enqueue(Working), enqueue(Working)
    drain("test.work")
    assert [row[0] for row in seen] != [left]
    assert len(seen) == 1
    assert Job.objects.get(pk=first).state == ("pending" if raises else "completed")


def test_a_session_that_no_call_changed_is_kept(scripted) -> None:
    pids = []

    def work(job: ClaimedJob) -> None:
        with transaction.atomic():
            execute("SET LOCAL statement_timeout = '50s'")
            execute("SELECT pg_advisory_xact_lock(4711)")
            Job.objects.filter(pk=job.id).update(progress_note="done")
            pids.extend(execute("SELECT pg_backend_pid()"))

    scripted("test.work", work)
    enqueue_many(Working, [{}] * 3)
    work_off(["test.work"])
    assert len(pids) == 3
    assert len(set(pids)) == 1


def test_prepared_statements_work_after_a_change(scripted) -> None:
    """psycopg's own cache of prepared statements fits the new session."""

    def work(job: ClaimedJob) -> None:
        for number in range(10):
            Job.objects.filter(pk=job.id, priority=1).exists()
            if number == 7:
                execute("SET application_name = 'left'")

    scripted("test.work", work)
    enqueue_many(Working, [{}] * 5)
    work_off(["test.work"])
    assert set(Job.objects.values_list("state", "claim_no")) == {("completed", 1)}


# --- time limits ----------------------------------------------------------------------------------


def sleepers() -> int:
    """The statements that sleep in this database, seen from another connection."""
    dsn = conninfo.make_conninfo(
        **{
            name: value
            for name, value in connection.get_connection_params().items()
            if name in ("host", "port", "user", "password", "dbname")
        }
    )
    with psycopg.connect(dsn, autocommit=True) as other:
        row = other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND state = 'active' AND query LIKE '%%pg_sleep(60)%%' AND pid <> pg_backend_pid()"
        ).fetchone()
    assert row is not None
    return row[0]


def in_atomic() -> None:
    with transaction.atomic():
        execute("SELECT pg_sleep(60)")


def in_own_transaction() -> None:
    execute("BEGIN")
    execute("SELECT pg_sleep(60)")


def in_a_fetch() -> None:
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute("SELECT pg_sleep(60), n FROM generate_series(1, 3) n")
        cursor.fetchall()


def past_django() -> None:
    connection.ensure_connection()
    connection.connection.execute("SELECT pg_sleep(60)")


WAITS: list[Callable[[], Any]] = [
    lambda: execute("SELECT pg_sleep(60)"), in_atomic, in_own_transaction, in_a_fetch, past_django,
]  # fmt: skip


@pytest.mark.parametrize(
    "wait", WAITS, ids=["plain", "atomic", "begin", "server cursor", "past django"]
)
def test_a_time_limit_ends_the_statement_at_the_server(scripted, monkeypatch, wait) -> None:
    monkeypatch.setattr(Working, "time_limit", 0.5)
    running = []
    scripted("test.work", lambda job: wait())
    enqueue(Working)
    for verdict in verdicts_on(claimed("test.work")):
        running.append(sleepers())
        settle.settle([verdict])
    assert running == [0], "before it is settled"
    assert clean()
    job = Job.objects.get()
    assert (job.state, job.error) == ("pending", "took longer than its time limit of 0.5 s")
    assert Attempt.objects.get().outcome == "retried"


def test_a_connection_is_of_use_after_a_time_limit(scripted, monkeypatch) -> None:
    monkeypatch.setattr(Working, "time_limit", 300)
    ids = [enqueue(Working) for _ in range(3)]

    def work(job: ClaimedJob) -> None:
        if job.id == ids[1]:
            signal.setitimer(signal.ITIMER_REAL, 0.3)  # the limit, soon
            in_atomic()
        execute("SELECT 1")

    scripted("test.work", work)
    work_off(["test.work"])
    states = dict(Job.objects.values_list("id", "state"))
    assert states == {ids[0]: "completed", ids[1]: "pending", ids[2]: "completed"}
