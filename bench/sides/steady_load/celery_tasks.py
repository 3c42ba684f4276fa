"""Plain Celery: four tasks in four queues, each writes when it began. No state."""

import os
import time

from celery import Celery

from bench.app import parts

app = Celery("steady_load", broker=os.environ["BROKER_URL"])
app.conf.task_ignore_result = True
NAMES = [f"plain.effect_{letter}" for letter in "abcd"]
app.conf.task_routes = {name: {"queue": name} for name in NAMES}

_open: list[int] = []


def _stamps() -> int:
    if not _open:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        _open.append(os.open(os.environ["BENCH_STAMPS"], flags, 0o644))
    return _open[0]


def stamp(event: int) -> None:
    """Write that the effect begins."""
    if parts.FILE:
        parts.reached("called")
        return
    os.write(_stamps(), f"{event} {time.monotonic()}\n".encode())


if parts.FILE:
    parts.watch_celery()
TASKS = [app.task(name=name)(stamp) for name in NAMES]
