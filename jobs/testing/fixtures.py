"""Fixtures for pytest: `pytest_plugins = ["tailrace.jobs.testing.fixtures"]` in the outermost
conftest."""

from collections.abc import Iterator

import pytest

from tailrace.jobs.testing.clock import Clock
from tailrace.jobs.testing.receiver import WebhookReceiver
from tailrace.jobs.testing.receiver import webhook_receiver as receiving


@pytest.fixture
def clock() -> Iterator[Clock]:
    """A clock that the test moves: `clock.step(60)`."""
    moved = Clock()
    yield moved
    moved.reset()


@pytest.fixture
def webhook_receiver() -> Iterator[WebhookReceiver]:
    """A receiver of webhooks on this machine."""
    with receiving() as receiver:
        yield receiver
