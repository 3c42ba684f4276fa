"""What the tables cost, and who holds the oldest snapshot: the command, and the verdict's cause."""

from contextlib import suppress
from io import StringIO

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from psycopg import OperationalError

from tailrace.db.query import query
from tailrace.events.management.subcommands import call_subcommand
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.storage import Relation, oldest_snapshot, sizes
from tailrace.jobs.platform.inspection.verdict.causes.engines import snapshot_held
from tests.kit import held, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

TABLES = """
CREATE TABLE storage_plain (id bigint PRIMARY KEY, text text);
CREATE TABLE storage_parts (id bigint) PARTITION BY RANGE (id);
CREATE TABLE storage_part_1 PARTITION OF storage_parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE storage_part_2 PARTITION OF storage_parts FOR VALUES FROM (1000) TO (3000);
INSERT INTO storage_plain SELECT g, g::text FROM generate_series(1, 1000) g;
INSERT INTO storage_plain
  SELECT 0, string_agg(md5(g::text), '') FROM generate_series(1, 30000) g;
INSERT INTO storage_parts SELECT generate_series(0, 2999);
"""


@pytest.fixture
def _tables() -> object:
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        cursor.execute("DELETE FROM storage_plain WHERE id > 900")
        cursor.execute("VACUUM ANALYZE storage_plain, storage_parts")
        cursor.execute("UPDATE storage_plain SET text = 'x' WHERE id = 1")
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT 1")
        yield
        cursor.execute("DROP TABLE storage_plain, storage_parts")


def relation(name: str) -> Relation:
    return next(each for each in sizes(limit=1000).relations if each.name == name)


@pytest.mark.usefixtures("_tables")
def test_a_table_with_its_indexes_and_its_long_values() -> None:
    plain = relation("storage_plain")
    assert (plain.rows, plain.parts) == (901, 1)
    assert plain.heap >= 901 * 28
    assert plain.toast > 500_000
    assert plain.indexes >= 16_384
    assert plain.total == plain.heap + plain.indexes + plain.toast
    assert plain.vacuumed_at is not None


@pytest.mark.usefixtures("_tables")
def test_partitions_are_one_table() -> None:
    parts = relation("storage_parts")
    assert (parts.rows, parts.parts) == (3000, 2)
    assert parts.heap == sum(
        query("SELECT pg_table_size('storage_part_1') + pg_table_size('storage_part_2')")[0]
    )


@pytest.mark.usefixtures("_tables")
def test_the_list_is_bounded_and_the_largest_come_first() -> None:
    now = sizes(limit=3)
    assert len(now.relations) == 3 < now.tables
    assert now.relations[0].total >= now.relations[1].total >= now.relations[2].total
    [(all_of_them,)] = query(
        """SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
           WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"""
    )
    assert now.total == all_of_them


@pytest.mark.usefixtures("_tables")
def test_the_command_shows_both() -> None:
    out = StringIO()
    with held("UPDATE tailrace_jobs_queue SET paused_at = paused_at") as pid:
        call_subcommand("stats", "--limit", "1000", stdout=out)
    text = out.getvalue()
    assert "tailrace_jobs_live " in text
    assert "storage_parts (2 partitions)" in text
    assert f"Oldest snapshot: session psql (process {pid}) since " in text
    assert text.splitlines()[0].startswith("table")


def test_a_session_that_only_reads_holds_a_snapshot() -> None:
    with held("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1") as pid:
        snapshot = oldest_snapshot()
        assert snapshot is not None
        assert (snapshot.kind, snapshot.name, snapshot.pid) == ("session", "psql", pid)

        for _ in range(3):
            query("SELECT pg_current_xact_id()::text")
        later = oldest_snapshot()
        assert later is not None
        assert later.transactions >= snapshot.transactions + 3
        assert later.seconds is not None
        assert later.seconds > 0


def test_nobody_holds_one() -> None:
    assert oldest_snapshot() is None


def cause() -> verdict.Cause | None:
    return next((c for c in verdict.work_out().causes if c.code == "snapshot_held"), None)


def test_a_snapshot_that_is_old_enough_to_hurt_is_a_cause(monkeypatch) -> None:
    monkeypatch.setattr(snapshot_held, "LEAST_TRANSACTIONS", 2)
    with held("UPDATE tailrace_jobs_queue SET paused_at = paused_at") as pid:
        query("SELECT pg_current_xact_id()::text")
        query("SELECT pg_current_xact_id()::text")
        assert cause() is None, "it is young"
        monkeypatch.setattr(snapshot_held, "HELD_SECONDS", 0)
        found = cause()
        assert found is not None
        assert found.words.startswith("A session has held a snapshot since ")
        assert found.private == f"It is the session psql (process {pid})."
        assert found.quoted == "Its statement: UPDATE tailrace_jobs_queue SET paused_at = paused_at"
        assert found.command == f'psql -c "SELECT pg_terminate_backend({pid})"'
        monkeypatch.setattr(snapshot_held, "LEAST_TRANSACTIONS", 1000)
        assert cause() is None, "little has happened since"
    assert cause() is None


def test_the_session_that_holds_a_snapshot_is_ended_by_its_button() -> None:
    check, ada = verdict.check_of("snapshot_held"), User.objects.create_user("ada")
    assert check is not None
    with suppress(OperationalError), held("UPDATE tailrace_jobs_queue SET paused_at = NULL"):
        query("SELECT pg_current_xact_id()::text")
        snapshot = oldest_snapshot()
        assert snapshot is not None
        for other in (f"{snapshot.pid} 2020-01-01T00:00:00+00:00", "1 x", "no session"):
            assert check.mend(ada, other).startswith("This session has ended")
        # An ANALYZE that began before it may hold as old a snapshot for a moment.
        wait_until(lambda: "asked to end" in check.mend(ada, snapshot.session))
        wait_until(lambda: oldest_snapshot() is None)
        entry = LogEntry.objects.get()
        assert (entry.user, entry.change_message) == (ada, "ended")
        assert entry.object_repr == f"the session psql (process {snapshot.pid})"
        assert check.mend(ada, snapshot.session).startswith("This session has ended")
