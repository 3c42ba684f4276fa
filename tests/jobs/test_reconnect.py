"""A connection that PostgreSQL ends costs a process that connection, and nothing else."""

from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from psycopg import conninfo

from jobs import tasks, tick
from jobs.drain import drain
from jobs.enqueue import enqueue
from jobs.handler import Handler
from jobs.models import Job, Queue
from tests.sandbox.handlers import Ordered, Working

pytestmark = pytest.mark.django_db(transaction=True)


def end_session() -> None:
    """Let PostgreSQL end this process's session, as a restart does."""
    pid = connection.connection.info.backend_pid
    dsn = conninfo.make_conninfo(connection.connection.info.dsn)
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def ended_before(words: str) -> Any:
    """An execute_wrapper that ends the session once, right before a statement with these words."""
    done = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if words in sql and not done:
            done.append(sql)
            end_session()
        return execute(sql, params, many, context)

    return connection.execute_wrapper(wrapper)


@pytest.mark.parametrize("handler", [Working, Ordered])
def test_a_drain_on_a_dead_connection_makes_a_new_one(handler: type[Handler]) -> None:
    enqueue(handler)
    end_session()
    assert drain(handler.name) == 1
    assert Job.objects.get().state == "completed"


def test_a_tick_on_a_dead_connection_makes_a_new_one() -> None:
    enqueue(Working)
    Queue.objects.update(awake=False)
    end_session()
    tasks._fresh(tick.tick)()
    assert Queue.objects.get(pk="test.work").awake


@pytest.mark.parametrize(
    "words", ["pg_advisory_xact_lock", "count(*)", "SET state = 'running'", "tokens - "]
)
def test_a_session_that_ends_within_a_claim_leaves_no_transaction_behind(words: str) -> None:
    """Else every drain of this process failed from then on, and took the messages of others."""
    Queue.objects.filter(pk="test.ordered").update(max_running=5, rate_limit=100)
    enqueue(Ordered)
    with ended_before(words), pytest.raises(OperationalError):
        drain("test.ordered")
    assert not connection.in_atomic_block
    assert drain("test.ordered") == 1
    assert Job.objects.get().state == "completed"


def test_an_error_that_a_live_connection_answers_is_not_tried_again() -> None:
    calls = []

    def fail() -> None:
        calls.append(1)
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 1")
            try:
                cursor.execute("SELECT pg_sleep(5)")
            finally:
                cursor.execute("RESET statement_timeout")

    with pytest.raises(OperationalError, match="statement timeout"):
        tasks._fresh(fail)()
    assert calls == [1]
