from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from subscriptions.channels.mail import transport
from tests.servers.smtp import MailServer, mail_server
from tests.subscriptions import sample_domain


@pytest.fixture(autouse=True)
def _no_role_holders() -> Iterator[None]:
    """Nobody holds a role at first, and no connection stays open."""
    for table in (sample_domain.holders, sample_domain.readers):
        table.clear()
    yield
    for table in (sample_domain.holders, sample_domain.readers):
        table.clear()
    transport.close()


@pytest.fixture
def smtp(settings: Settings) -> Iterator[MailServer]:
    """A mail server that Django sends to."""
    with mail_server() as server:
        for name, value in server.settings().items():
            setattr(settings, name, value)
        yield server
