"""Attacks by sources of records: what an attacker reached is in the names."""

from collections.abc import Callable, Iterator

import pytest
from pytest_django.fixtures import Settings

from tailrace.domains.records.models import Deposition
from tailrace.domains.records.sources.fetch import origin
from tailrace.domains.records.sources.requests import request_pull
from tailrace.domains.records.sources.upkeep.checks import problems
from tailrace.jobs.models import Job
from tailrace.net.sample_server import Response
from tests.records.kit import source
from tests.servers.oai_pmh import Repository, oai_repository

pytestmark = pytest.mark.django_db
PULL = "records.pull_from_source"
INSIDE = [
    "http://127.0.0.1:8080/oai", "https://127.0.0.1/", "https://10.1.2.3/", "https://192.168.0.1/",
    "http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "https://[::1]/",
    "https://[::ffff:127.0.0.1]/", "https://[fd00::1]/", "https://localhost/", "https://0.0.0.0/",
    "https://2130706433/", "https://0x7f000001/", "https://127.1/", "ftp://example.org/",
    "file:///etc/passwd", "gopher://example.org/", "http://example.org/oai",
    "https://user:secret@example.org/", "https://example.org\n.evil.org/", "https://",
    "//example.org/",
]  # fmt: skip


@pytest.fixture
def inside() -> Iterator[Repository]:
    """A server within the network of the operator, which no setting allows."""
    with oai_repository() as repository:
        repository.add("oai:secret", title="Secret", creator="x")
        yield repository


@pytest.fixture
def outside(settings: Settings) -> Iterator[Repository]:
    """The attacker's server, which stands for a public one."""
    with oai_repository() as repository:
        settings.RECORDS_LOCAL_SOURCES = [origin(repository.url)]
        settings.RECORDS_REQUESTS_PER_SECOND = 1000.0
        yield repository


@pytest.mark.parametrize("url", INSIDE)
def test_an_address_inside_became_a_source(url: str) -> None:
    assert problems("oai_pmh", url, {}, "0 3 * * *").keys() == {"url"}


@pytest.mark.parametrize("url", INSIDE)
def test_an_address_inside_was_read(
    url: str, settings: Settings, run_jobs: Callable[..., int]
) -> None:
    """The check of the form is not the only one: a name may change where it leads."""
    settings.RECORDS_LOCAL_SOURCES = []
    row = source(url=url)
    request_pull(row.pk)
    run_jobs(PULL)
    row.refresh_from_db()
    assert Job.objects.get(handler=PULL).state == "failed"
    assert row.last_error
    assert "secret@" not in row.last_error


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_led_inside(
    status: int, inside: Repository, outside: Repository, run_jobs: Callable[..., int]
) -> None:
    outside.before = lambda request: Response(status, b"", {"Location": inside.url})
    row = source(url=outside.url)
    request_pull(row.pk)
    run_jobs(PULL)
    row.refresh_from_db()
    assert outside.requests
    assert inside.requests == []
    assert row.last_error
    assert not Deposition.objects.exists()


def test_an_address_was_allowed_by_one_that_it_begins_with(
    inside: Repository, settings: Settings
) -> None:
    settings.RECORDS_LOCAL_SOURCES = [origin(inside.url)[:-1], "http://127.0.0.1"]
    for url in (inside.url, f"{origin(inside.url)}.evil.org/", "http://127.0.0.1:1/"):
        assert "url" in problems("oai_pmh", url, {}, "0 3 * * *")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/oai", "https://127.0.0.1/oai"])
def test_the_way_out_is_the_variable_of_sources(url: str, settings: Settings, run_jobs) -> None:
    settings.RECORDS_LOCAL_SOURCES = []
    row = source(url=url)
    request_pull(row.pk)
    run_jobs(PULL)
    row.refresh_from_db()
    for text in (
        row.last_error,
        *problems("oai_pmh", "http://example.org/", {}, "0 3 * * *").values(),
    ):
        assert "RECORDS_LOCAL_SOURCES" in text
        assert "WEBHOOK" not in text
