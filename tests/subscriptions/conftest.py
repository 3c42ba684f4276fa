from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from subscriptions import outbox
from tests.servers.smtp import MailServer, mail_server
from tests.subscriptions import stage


@pytest.fixture(autouse=True)
def _empty_stage() -> Iterator[None]:
    """Nobody holds a role at first, and no connection stays open."""
    for said in (stage.holders, stage.readers):
        said.clear()
    yield
    for said in (stage.holders, stage.readers):
        said.clear()
    outbox.close()


@pytest.fixture
def smtp(settings: Settings) -> Iterator[MailServer]:
    """A mail server that Django sends to."""
    with mail_server() as server:
        for name, value in server.settings().items():
            setattr(settings, name, value)
        yield server
