from collections.abc import Iterator

import pytest

from tailrace.subscriptions.channels.mail import transport
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
