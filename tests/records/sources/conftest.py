"""Servers of records, and a source that is read from them."""

from collections.abc import Callable, Iterator

import pytest
from pytest_django.fixtures import Settings

from tailrace.domains.records.handlers.pull_from_source import PullFromSource
from tailrace.domains.records.models import Source
from tailrace.domains.records.sources.fetch import origin
from tailrace.domains.records.sources.requests import request_pull
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tests.records.kit import source
from tests.servers.json_feed import FeedServer, feed_server
from tests.servers.oai_pmh import Repository, oai_repository

PULL = PullFromSource.name


@pytest.fixture
def repository(settings: Settings) -> Iterator[Repository]:
    """A repository that the settings allow, on this machine."""
    with oai_repository() as repository:
        allow(settings, repository.url)
        yield repository


@pytest.fixture
def feed(settings: Settings) -> Iterator[FeedServer]:
    """A feed that the settings allow, on this machine."""
    with feed_server() as feed:
        allow(settings, feed.url)
        yield feed


def allow(settings: Settings, url: str) -> None:
    settings.RECORDS_LOCAL_SOURCES = [origin(url)]
    settings.RECORDS_REQUESTS_PER_SECOND = 1000.0


@pytest.fixture
def oai_source(repository: Repository) -> Source:
    return source("sample", kind="oai_pmh", url=repository.url)


@pytest.fixture
def json_source(feed: FeedServer) -> Source:
    return source("feed", kind="json", url=feed.url)


@pytest.fixture
def pull(run_jobs: Callable[..., int]) -> Callable[[Source], Job]:
    """Return `pull(source)`, which reads it until nothing is due and returns the job; a
    request that was merged into another has none."""

    def pull(source: Source) -> Job:
        request_pull(source.pk, "an operator")
        run_jobs(PULL)
        source.refresh_from_db()
        jobs = Job.objects.filter(handler=PULL, lane=str(source.pk))
        return jobs.exclude(state=State.SKIPPED).latest("pk")

    return pull
