"""PostgreSQL has no connection left for a while: nothing is lost, and everybody comes back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import OperationalError, connection, connections, transaction

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Job
from tests.kit import empty_broker, wait_until, worker
from tests.sandbox.event_types import Whispered
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db(transaction=True)

ROLE = "tailrace_limited"
PASSWORD = "limited"
"""The embedded PostgreSQL asks every role for one but its own."""
REFUSED = "too many connections for role"


class Role:
    """A user of the test's database who may have a limited number of connections."""

    def limit(self, connections: int) -> None:
        """Give it so many, -1 for as many as it wants; end those that it has."""
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER ROLE {ROLE} CONNECTION LIMIT {connections}")
            cursor.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s",
                [ROLE],
            )


@pytest.fixture
def role() -> Iterator[Role]:
    user = connection.settings_dict["USER"]
    with connection.cursor() as cursor:
        cursor.execute(f"DROP ROLE IF EXISTS {ROLE}")
        cursor.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}' IN ROLE \"{user}\"")
    role = Role()
    yield role
    role.limit(0)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP ROLE {ROLE}")


@contextmanager
def this_process_as(user: str) -> Iterator[None]:
    """Let the connections of this process be of that user."""
    saved = {
        alias: {key: database[key] for key in ("USER", "PASSWORD")}
        for alias, database in connections.settings.items()
    }
    connections.close_all()
    for database in connections.settings.values():
        database |= {"USER": user, "PASSWORD": PASSWORD}
    try:
        yield
    finally:
        connections.close_all()
        for alias, database in connections.settings.items():
            database |= saved[alias]


def test_publishers_get_the_error_of_the_database(role) -> None:
    role.limit(0)
    with this_process_as(ROLE):
        with pytest.raises(OperationalError, match=REFUSED), transaction.atomic():
            publish(NewEvent(Whispered))
        with pytest.raises(OperationalError, match=REFUSED):
            enqueue(Working)
    assert not Event.objects.exists()
    assert not Job.objects.exists()


def test_a_drain_without_a_connection_works_the_next_time(role) -> None:
    enqueue(Working)
    role.limit(0)
    with this_process_as(ROLE), pytest.raises(OperationalError, match=REFUSED):
        drain("test.work")
    role.limit(-1)
    with this_process_as(ROLE):
        assert drain("test.work") == 1
    assert Job.objects.get().claim_no == 1


@pytest.mark.slow
def test_a_worker_comes_back_when_connections_are_free(role, process_env, tmp_path: Path) -> None:
    """With its upkeep: nobody else sends the wake-ups that were lost meanwhile."""
    empty_broker()
    env = process_env | {"DATABASE_URL": as_user(process_env["DATABASE_URL"], ROLE)}
    with worker(env, ["test.work"], log=tmp_path / "worker.log", concurrency=2) as refused:
        done = Job.objects.filter(state="completed")
        enqueue(Working)
        wait_until(lambda: done.count() == 1, 120)
        role.limit(0)
        enqueue_many(Working, [{}] * 10)
        wait_until(lambda: refused.output.count(REFUSED) >= 3, 120, "the worker is refused")
        assert refused.process.poll() is None
        role.limit(-1)
        wait_until(lambda: done.count() == 11, 120)
        assert refused.process.poll() is None


def as_user(url: str, user: str) -> str:
    parts = urlsplit(url)
    rest = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:{PASSWORD}@{rest}"))
