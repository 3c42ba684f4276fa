"""Fixtures for pytest. To use them, add `pytest_plugins = ["tailrace.jobs.testing.fixtures"]` to
the outermost conftest.py."""

from collections.abc import Iterator

import pytest

from tailrace.jobs.testing.clock import Clock
from tailrace.jobs.testing.receiver import WebhookReceiver
from tailrace.jobs.testing.receiver import webhook_receiver as receiving


@pytest.fixture
def clock() -> Iterator[Clock]:
    """A clock that the test can move: `clock.step(60)`."""
    test_clock = Clock()
    yield test_clock
    test_clock.reset()


@pytest.fixture
def webhook_receiver() -> Iterator[WebhookReceiver]:
    """A receiver of webhooks on this machine."""
    with receiving() as receiver:
        yield receiver
