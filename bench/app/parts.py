"""Write when a job reaches each station between its commit and its call, if BENCH_PARTS names a
file. Each line: the station, and the time (CLOCK_MONOTONIC, the same for all processes)."""

import os
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

FILE = os.environ.get("BENCH_PARTS", "")
STATIONS = ("committed", "marks", "marked", "sent", "received", "in child", "begun", "claimed",
            "called")  # fmt: skip
_open: list[int] = []


def reached(station: str) -> None:
    if not FILE:
        return
    at = time.monotonic()
    if not _open:
        _open.append(os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644))
    os.write(_open[0], f"{station}\t{at}\n".encode())


def watch() -> None:
    """Write when the functions of the engine and of Celery are called and return."""
    from tailrace.jobs.engine import drain
    from tailrace.jobs.engine.waking import wake

    _wrap(wake, "_mark", before="marks", after="marked")
    _wrap(wake, "_send", after="sent")
    _wrap(drain, "begin", after="begun")
    _wrap(drain, "claim", after="claimed")
    _wrap(drain, "begin_and_claim", after="claimed")
    watch_celery()


def watch_celery() -> None:
    """Write when a worker receives a message, and when its child begins with the task."""
    from celery.signals import task_prerun, task_received

    task_received.connect(_received, weak=False)
    task_prerun.connect(_in_child, weak=False)


def _received(**kwargs: Any) -> None:
    reached("received")


def _in_child(**kwargs: Any) -> None:
    reached("in child")


def _wrap(module: Any, name: str, *, before: str = "", after: str) -> None:
    function: Callable[..., Any] = getattr(module, name)

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if before:
            reached(before)
        result = function(*args, **kwargs)
        reached(after)
        return result

    setattr(module, name, wrapper)
