"""Which statements change a session for longer than their transaction."""

import pytest
from psycopg import sql

from tailrace.db import locks
from tailrace.db.sessions.session_statements import changes_session


@pytest.mark.parametrize(
    "statement",
    [
        "SET statement_timeout = '1s'",
        "set session search_path to x",
        "  \n SET ROLE other",
        "-- a comment\nSET x.y = '1'",
        "/* a; comment */ SET x.y = '1'",
        "SELECT 1; SET x.y = '1'",
        "SELECT set_config('x.y', '1', false)",
        "SELECT set_config('x.y', 'true', $1)",
        "SELECT set_config('x.y', 'true', f('a', true))",
        "SELECT set_config('x.y', '1', true), set_config('x.z', '1', is_local => false)",
        "LISTEN channel",
        "PREPARE p AS SELECT 1",
        "LOAD 'auto_explain'",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_try_advisory_lock_shared(1)",
        "DO $$ BEGIN PERFORM pg_advisory_lock(1); END $$",
        "CREATE TEMP TABLE t (id int)",
        "create temporary view v as select 1",
        "SELECT 1 AS a INTO TEMP t",
        "CREATE TABLE pg_temp.t (id int)",
        "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
        b"SET x.y = '1'",
        sql.SQL("SET {} = '1'").format(sql.Identifier("x")),
    ],
    ids=str,
)
def test_a_statement_that_changes_the_session_is_seen(statement: object) -> None:
    assert changes_session(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tailrace_jobs_job SET state = 'pending'",
        "UPDATE tailrace_jobs_job\n   SET state = 'pending'",
        "SET LOCAL statement_timeout = '1s'",
        "SET TRANSACTION READ ONLY",
        "SELECT set_config('x.y', '1', true)",
        "SELECT SET_CONFIG ('x.y', CASE WHEN f(a, ',)') THEN b ELSE 'it''s' END , TRUE )",
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT temp FROM weather WHERE temperature > 1 AND hold",
        "INSERT INTO temps VALUES (1); UPDATE temps SET n = 2",
        "DECLARE c CURSOR FOR SELECT 1",
    ],
)
def test_other_statements_are_not(statement: str) -> None:
    assert not changes_session(statement)


def test_publishing_leaves_the_session_as_it_was() -> None:
    assert not changes_session(f"WITH {locks.LIMITED}, {locks.restored('limited')} SELECT 1")
