"""Publish a call without the signals of Celery that announce it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from celery import signals

_silent: ContextVar[bool] = ContextVar("silent", default=False)


def install() -> None:
    """Let `silent` apply to the two signals, which Celery itself sends."""
    for signal in (signals.before_task_publish, signals.after_task_publish):
        receivers_of = signal._live_receivers
        if not hasattr(receivers_of, "__wrapped__"):
            signal._live_receivers = _unless_silent(receivers_of)


def _unless_silent(receivers_of: Any) -> Any:
    def receivers(sender: Any) -> Any:
        return [] if _silent.get() else receivers_of(sender)

    receivers.__wrapped__ = receivers_of  # type: ignore[attr-defined]
    return receivers


@contextmanager
def silent() -> Iterator[None]:
    """Within the block, publications send no signals: the caller only needs the message."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)
