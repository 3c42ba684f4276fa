"""Fixtures of watched properties."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from tailrace.jobs.models import Job
from tests.protection.hometitle.kit import SCAN, now, premium, request_scan
from tests.servers.soda import SodaServer, soda_server
from tests.subscriptions.sample_domain import person


@pytest.fixture
def soda(settings: Settings) -> Iterator[SodaServer]:
    """A local server of open data, which the settings name."""
    with soda_server() as server:
        settings.PROTECTION_SODA_URL = server.url
        settings.PROTECTION_SODA_TOKEN = server.token
        settings.PROTECTION_SODA_PER_MINUTE = 60_000
        yield server


@pytest.fixture
def ann() -> User:
    """A user whose plan has monitoring."""
    user = person("ann")
    premium(user)
    return user


@pytest.fixture
def scan(run_jobs: Callable[..., int]) -> Callable[..., Job]:
    """Return `scan(user)`: it scans their properties, and returns the job as it has ended."""

    def scan_now(user: User, **payload: object) -> Job:
        job = request_scan(user, **payload)
        run_jobs(SCAN)
        return now(job)

    return scan_now
