"""Fixtures of the tests of Celery tasks."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import current_app

from tailrace.jobs.engine.waking.wake import WORK
from tailrace.jobs.frameworks.celery_tasks import handlers
from tests.sandbox import durable


@pytest.fixture(autouse=True)
def _reset() -> Iterator[None]:
    handlers.forget_queues()
    yield
    durable.script.clear()
    durable.Base.hooks.clear()


@pytest.fixture
def do() -> Callable[..., None]:
    """Let the next calls of the task `scripted` do this."""

    def set_script(*calls: Callable[..., Any]) -> None:
        durable.script[:] = calls

    return set_script


@pytest.fixture
def received() -> Iterator[Callable[..., list[Any]]]:
    """Return `received(signal, …)`: the list to which these signals of Celery are appended, each as
    a tuple of its name and its arguments."""
    connected: list[Any] = []

    def listen(*signals: Any) -> list[Any]:
        events: list[Any] = []
        for signal in signals:

            def receive(sender: Any = None, signal: Any = None, **kwargs: Any) -> None:
                if sender != WORK:  # the wake-ups of queues are tasks, too
                    events.append((signal.name, sender, kwargs))

            signal.connect(receive, weak=False)
            connected.append((signal, receive))
        return events

    yield listen
    for signal, receive in connected:
        signal.disconnect(receive)


@pytest.fixture
def configured() -> Iterator[Callable[..., None]]:
    """Return `configured(setting=value)`: settings of the Celery app in this test."""
    before: dict[str, Any] = {}

    def configure(**settings: Any) -> None:
        for name in settings:
            before.setdefault(name, current_app.conf[name])
        set_all(settings)

    def set_all(values: dict[str, Any]) -> None:
        current_app.conf.update(values)
        vars(current_app).pop("timezone", None)  # which the application keeps

    yield configure
    set_all(before)
