"""Fixtures for all tests: a clock to step, and a worker that works here and now."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from events import clock as events_clock
from jobs import claim, registry
from jobs.drain import drain
from tests.sandbox import handlers


class Clock:
    """Steps the time that the database statements and the code go by."""

    def step(self, seconds: float) -> None:
        events_clock.offset += seconds

    def now(self) -> datetime:
        return events_clock.now()


@pytest.fixture
def clock() -> Iterator[Clock]:
    yield Clock()
    events_clock.offset = 0.0


@pytest.fixture
def run_jobs() -> Callable[..., int]:
    """Return a worker: `run_jobs()` drains all queues (or those named) until nothing is due."""

    def work(*names: str) -> int:
        total = 0
        while settled := sum(drain(name) for name in (names or registry.everything())):
            total += settled
            assert total < 100_000, "jobs are handed back for ever"
        return total

    return work


@pytest.fixture(autouse=True)
def _unscripted() -> Iterator[None]:
    """Each test begins with handlers that do what their payload says, and with the first lane."""
    claim._last_lanes.clear()
    yield
    handlers.script.clear()


@pytest.fixture
def scripted() -> Callable[[str, Callable[[Any], Any]], None]:
    """Return `scripted(name, call)`: what the handler of that name does in this test."""

    def say(name: str, call: Callable[[Any], Any]) -> None:
        handlers.script[name] = call

    return say
