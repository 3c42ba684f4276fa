"""Kill a process at one point: before or after a statement, a commit, a message.

Run as a program it is a fork server: it has set Django up, never opened a connection, and forks a
child for each line that it reads, `scenario source_id point moment clock`. The child does the
scenario, so many seconds ahead, and dies at that point, as from `kill -9`; with point 0 it goes to
the end and tells its points.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import django

BEFORE, AFTER = "before", "after"
COMMIT, MESSAGE = "COMMIT", "message"
ALONE = "alone: "
"""Before the names of statements outside of a transaction."""


class Points:
    """Numbers what passes, and dies at one of them."""

    def __init__(self, fatal: int, moment: str) -> None:
        self.fatal, self.moment = fatal, moment
        self.names: list[str] = []

    @contextmanager
    def pass_by(self, name: str) -> Any:
        self.names.append(" ".join(name.split())[:60])
        here = len(self.names) == self.fatal
        if here and self.moment == BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)
        yield
        if here and self.moment == AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """From here on statements, commits and messages of this process are points."""
        from django.db import connections
        from django.db.backends.base.base import BaseDatabaseWrapper
        from kombu import Producer

        def statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            alone = "" if context["connection"].in_atomic_block else ALONE
            with self.pass_by(alone + sql):
                return execute(sql, params, many, context)

        for connection in connections.all():
            connection.execute_wrappers.append(statement)
        for owner, method, name in (
            (BaseDatabaseWrapper, "_commit", COMMIT),
            (Producer, "publish", MESSAGE),
        ):
            setattr(owner, method, self._passing(name, getattr(owner, method)))

    def _passing(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def passing(*args: Any, **kwargs: Any) -> Any:
            with self.pass_by(name):
                return call(*args, **kwargs)

        return passing


def publish(source_id: str) -> None:
    """An event with a job in each of four queues."""
    from django.db import transaction

    from tailrace.events.publish import NewEvent
    from tailrace.events.publish import publish as record
    from tests.sandbox.event_types import Happened

    with transaction.atomic():
        payload = {"who": source_id, "tags": ["a"]}
        record(NewEvent(Happened, payload, source="crash", source_id=source_id))


def drain(source_id: str) -> None:
    """One run of a queue's task: begin, claim, run, settle, and a second claim that is empty."""
    from tailrace.jobs.engine.drain import drain as work

    work("test.log")


def drain_batch(source_id: str) -> None:
    """The same of a handler that takes its jobs together."""
    from tailrace.jobs.engine.drain import drain as work

    work("test.batch")


def drain_flow(source_id: str) -> None:
    """The parents of a callback: they end, and it becomes pending."""
    from tailrace.jobs.engine.drain import drain as work

    work("test.work")


def tick(source_id: str) -> None:
    """Rescue, schedules, wake-ups."""
    from tailrace.jobs.engine.maintenance.ticking.tick import tick as work

    work()


SCENARIOS = {call.__name__: call for call in (publish, drain, drain_batch, drain_flow, tick)}


def child(scenario: str, source_id: str, point: str, moment: str, ahead: str) -> None:
    """Do it; the points go to standard output, if it lives to tell them."""
    from django.conf import settings

    from tailrace.db import clock
    from tailrace.jobs.engine import drain as engine

    clock.offset = float(ahead)
    settings.JOBS_WAKE = "inline"  # the waker's thread would make the order one of chance
    # Nor does a slow machine make a drain hand over, or settle in several groups.
    settings.JOBS_DRAIN_SECONDS = engine.TURN_SECONDS = engine.SETTLE_SECONDS = 3600.0
    points = Points(int(point), moment)
    points.watch()
    SCENARIOS[scenario](source_id)
    sys.stdout.write(json.dumps(points.names) + "\n")
    sys.stdout.flush()
    os._exit(0)


def serve() -> None:
    """A child per line; a line with its signal where it died."""
    django.setup()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            try:
                child(*line.split())
            finally:
                os._exit(1)
        status = os.waitpid(pid, 0)[1]
        if status:
            sys.stdout.write(json.dumps({"status": os.waitstatus_to_exitcode(status)}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve()
