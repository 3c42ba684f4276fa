"""Fixtures of protection."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.servers.hibp import KEY, HibpService, hibp_service


@pytest.fixture
def hibp(settings: Settings) -> Iterator[HibpService]:
    """A local service like Have I Been Pwned, which the settings name; its limit is high."""
    with hibp_service() as service:
        settings.PROTECTION_HIBP_URL = settings.PROTECTION_PASSWORDS_URL = service.url
        settings.PROTECTION_HIBP_KEY = KEY
        settings.PROTECTION_HIBP_PER_MINUTE = 60_000
        yield service


@pytest.fixture(autouse=True)
def _private_files(protection_folder: Path) -> None:
    """Each test has a folder of its own for stored files."""
