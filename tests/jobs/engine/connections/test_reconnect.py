"""A connection that PostgreSQL closes is replaced, and nothing else is lost."""

from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, connections
from psycopg import conninfo

from tailrace.db.connections import ENGINE, with_reconnect
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job, Queue, QueueActivity
from tests.sandbox.handlers import Ordered, Working

pytestmark = pytest.mark.django_db(transaction=True)


def end_sessions() -> None:
    """Let PostgreSQL end this process's sessions, as a restart does."""
    dsn = conninfo.make_conninfo(connection.connection.info.dsn)
    with psycopg.connect(dsn, autocommit=True) as other:
        for ours in connections.all(initialized_only=True):
            if ours.connection is not None:
                pid = ours.connection.info.backend_pid
                other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def ended_before(words: str) -> Any:
    """An execute_wrapper that ends the session once, right before a statement with these words."""
    done = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if words in sql and not done:
            done.append(sql)
            end_sessions()
        return execute(sql, params, many, context)

    return connections[ENGINE].execute_wrapper(wrapper)


@pytest.mark.parametrize("handler", [Working, Ordered])
def test_a_drain_on_a_dead_connection_makes_a_new_one(handler: type[Handler]) -> None:
    drain(handler.name)  # opens the engine's connection
    enqueue(handler)
    end_sessions()
    assert drain(handler.name) == 1
    assert Job.objects.get().state == "completed"


def test_a_tick_on_a_dead_connection_makes_a_new_one() -> None:
    enqueue(Working)
    QueueActivity.objects.update(awake=False)
    end_sessions()
    with_reconnect(tick.tick)
    assert QueueActivity.objects.get(name="test.work").awake


@pytest.mark.parametrize(
    "words", ["pg_advisory_xact_lock", "count(*)", "SET state = 'running'", "tokens - "]
)
def test_a_session_closed_within_a_claim_leaves_no_transaction(words: str) -> None:
    """Else every drain of this process failed from then on, and took the messages of others."""
    Queue.objects.filter(pk="test.ordered").update(max_running=5, rate_limit=100)
    enqueue(Ordered)
    with ended_before(words), pytest.raises(OperationalError):
        drain("test.ordered")
    assert not connections[ENGINE].in_atomic_block
    assert drain("test.ordered") == 1
    assert Job.objects.get().state == "completed"


def test_an_error_on_a_live_connection_is_not_retried() -> None:
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
        with_reconnect(fail)
    assert calls == [1]
