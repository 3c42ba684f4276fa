"""The page of the tables."""

from collections.abc import Iterator

import pytest
from django.test import Client

from tailrace.jobs.platform.pages import storage
from tests.jobs import operators
from tests.kit import held, wait_until

pytestmark = pytest.mark.django_db
PAGE = "/overview/storage"


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    storage._recent.forget()
    yield
    storage._recent.forget()


@pytest.fixture
def ada() -> Client:
    return operators.client("ada", "tailrace_jobs.view_job")


def text(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def test_the_largest_tables_are_shown(ada: Client) -> None:
    assert '<th scope="row">tailrace_jobs_live</th>' in text(ada)
    assert "The largest" in text(ada, f"{PAGE}/now")


def test_who_holds_a_snapshot_is_shown_to_those_who_may_view_jobs(ada: Client) -> None:
    with held("UPDATE tailrace_jobs_queue SET paused_at = paused_at") as pid:

        def shows_it() -> bool:
            storage._recent.forget()
            return f"session psql (process {pid})" in text(ada)

        wait_until(shows_it)  # an autovacuum may just have an older one
        guest = text(operators.client("guest"))
        assert "a session" in guest
        assert "psql" not in guest


def test_it_is_read_once_for_all_viewers(ada: Client) -> None:
    first = len(operators.statements(ada, PAGE))
    assert len(operators.statements(ada, PAGE)) < first


def test_a_table_that_somebody_has_locked_is_no_error(ada: Client, monkeypatch) -> None:
    monkeypatch.setattr(storage, "STATEMENT_SECONDS", 0.2)
    with held("LOCK TABLE tailrace_jobs_breaker"):
        assert "The sizes could not be read: a statement took too long" in text(ada)
    storage._recent.forget()
    assert "The sizes could not be read" not in text(ada)
