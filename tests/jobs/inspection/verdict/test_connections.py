"""The connections of the database: a figure always, and a cause when few are left."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from django.db import OperationalError, connection
from django.test import Client
from psycopg import conninfo

from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.storage.connections import are_taken, connections
from tests.jobs import operators

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "a-token-of-monitoring"


@contextmanager
def taken(count: int) -> Iterator[None]:
    """Take this many connections, as a program called `report`."""
    connection.ensure_connection()
    dsn = conninfo.make_conninfo(connection.connection.info.dsn, application_name="report")
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(psycopg.connect(dsn))
        yield


@contextmanager
def limited(count: int) -> Iterator[None]:
    """Limit the connections of the test's database. A superuser may open more."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])

    def limit(number: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} CONNECTION LIMIT {number}")

    limit(count)
    try:
        yield
    finally:
        limit(-1)


def words() -> dict[str, str]:
    return {cause.code: cause.words for cause in verdict.work_out().causes}


def test_the_server_has_a_limit_that_is_counted() -> None:
    before = connections()
    assert (before.limited_by, before.possible > before.used > 0) == ("the server", True)
    assert before.used == before.ours + before.others
    with taken(3):
        assert connections().used >= 3
        assert any(" × report of " in holder for holder in connections().holders)


def test_few_connections_that_are_left_are_a_cause(system: None) -> None:
    with taken(8), limited(12):
        used = connections()
        assert (used.limited_by, used.possible) == ("this database", 12)
        assert used.others >= 8
        assert "connections_taken" not in words() or used.used >= 11
    with taken(12), limited(12):
        used = connections()
        assert words()["connections_taken"].startswith(
            f"{used.used} of 12 possible connections to the database are taken by the limit of this"
            f" database: {used.ours} by Tailrace, {used.others} by others."
        )
        [cause] = [each for each in verdict.work_out().causes if each.code == "connections_taken"]
        assert "12 × report of " in cause.private
    assert "connections_taken" not in words()


def test_the_figure_is_shown_always(system: None, settings: object) -> None:
    settings.HEALTH_TOKEN = TOKEN  # type: ignore[attr-defined]
    with limited(1000):
        used = connections()
        monitoring = Client(headers={"Authorization": f"Bearer {TOKEN}"})
        health = monitoring.get("/healthz").json()["connections"]
        assert health["possible"] == used.possible
        assert health["used"] >= health["own"] >= 1
        metrics = monitoring.get("/metrics").content.decode()
        assert f"tailrace_connections_possible {float(used.possible)}" in metrics
        assert 'tailrace_connections{owner="own"}' in metrics
        ada = operators.client("ada")
        of = f" of {used.possible:,}"
        assert f"{of} connections to the database are used" in ada.get("/").content.decode()
        page = ada.get("/overview/storage/now").content.decode()
        assert f"{of}</dd>" in page
        assert "Most sessions" not in page
    assert (
        "Most sessions"
        in operators.client("chief", "tailrace_jobs.view_job")
        .get("/overview/storage/now")
        .content.decode()
    )


@pytest.mark.parametrize(
    "text",
    [
        "FATAL:  sorry, too many clients already",
        'FATAL:  too many connections for database "shop"',
        'FATAL:  too many connections for role "shop"',
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
    ],
)
def test_the_errors_of_a_server_without_a_free_connection_are_known(text: str) -> None:
    assert are_taken(OperationalError(f"connection failed: {text}"))
    assert not are_taken(OperationalError("connection failed: Connection refused"))


@pytest.fixture
def ordinary_role() -> Iterator[str]:
    """A role of the server that is no superuser, so that limits apply to it."""
    name = "verdict_ordinary_role"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP ROLE IF EXISTS {name}")
        cursor.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'a password'")
    yield name
    with connection.cursor() as cursor:
        cursor.execute(f"DROP ROLE {name}")


def test_a_process_that_cannot_connect_says_that_the_database_is_full(
    system: None, ordinary_role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses the connection at once."""
    with taken(2), limited(2):
        with monkeypatch.context() as ordinary:
            ordinary.setitem(connection.settings_dict, "USER", ordinary_role)
            ordinary.setitem(connection.settings_dict, "PASSWORD", "a password")
            connection.close()
            answer = Client().get("/healthz")
            causes = words()
        connection.close()
    assert (answer.status_code, answer.json()["database"]) == (503, "full")
    assert "all possible connections are taken" in causes["connections_taken"]
