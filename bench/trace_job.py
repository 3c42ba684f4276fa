"""Trace a job from `enqueue` to its settlement, and print the modules that it passes through.

Usage: trace_job.py [--json] [--in-place]. A worker in this process runs a job, an event with one
job, and an event that notifies a user. Threads that belong to no job are left out, and, because the
same work is done twice before, everything that a process does only once.

Without DATABASE_URL and BROKER_URL it uses the embedded engines. It creates a database and drops
it; with --in-place it uses the existing database, in which its user, event types and jobs stay.
"""

import argparse
import inspect
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = Path(__file__).resolve()
LEFT_OUT = {"tick", "sweep", "shutdown", "totals"}
"""Threads that belong to no job: of the upkeep, the shutdown and the counts for /metrics."""
EVENTS_OF_CELERY = ROOT / "config" / "servers" / "consumer.py"
"""Sends Celery's own events of all tasks, at intervals."""
PATIENCE = 60.0
"""Seconds until the jobs must be settled."""
UNTRACED_RUNS = 2
"""How often the same work is done before the trace."""


class Recorder:
    """Records the functions that all threads execute until the last settlement."""

    def __init__(self, settle: Callable[..., Any]) -> None:
        self._settle = settle.__code__
        self._codes: set[CodeType] | None = None
        self._until_settled: set[CodeType] = set()

    def watch_new_threads(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def start(self) -> None:
        self._codes, self._until_settled = set(), set()

    def stop(self) -> dict[str, int]:
        """Return the passed files of the repository, in order, each with its number of lines."""
        self._codes = None
        # The bodies of modules and classes run at import. They are no functions: they have no
        # fast locals.
        functions = [code for code in self._until_settled if code.co_flags & inspect.CO_OPTIMIZED]
        paths = {Path(code.co_filename).resolve() for code in functions}
        paths -= {SCRIPT, EVENTS_OF_CELERY}
        packages = [ROOT / name for name in os.listdir(ROOT / "src" / "tailrace")]
        own = sorted(path for path in paths if any(map(path.is_relative_to, packages)))
        return {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in own}

    def _note(self, frame: FrameType, event: str, arg: Any) -> None:
        codes, code = self._codes, frame.f_code
        if codes is None or threading.current_thread().name in LEFT_OUT:
            return
        if event == "call":
            codes.add(code)
        if event == "return" and code is self._settle:
            self._until_settled = set(codes)


def traced_ways() -> dict[str, dict[str, int]]:
    """Run a worker in this thread, and trace each kind of work. Return the passed files of each
    kind, with their numbers of lines."""
    from celery import current_app
    from celery.signals import worker_ready
    from celery.worker.state import active_requests
    from django.contrib.auth.models import User
    from django.db import connection

    from tailrace.events.publish import NewEvent, publish
    from tailrace.events.types import EventType
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.maintenance import sync_declared
    from tailrace.jobs.engine.maintenance.pruning import history
    from tailrace.jobs.engine.settling.settle import settle
    from tailrace.jobs.enqueue import enqueue
    from tailrace.jobs.handler import ClaimedJob, Handler
    from tailrace.subscriptions.models import EventSubscription
    from tailrace.subscriptions.types.roles import Receivers, role
    from tailrace.subscriptions.types.subscribable import Subscribable

    class Traced(EventType):
        """An event with one job."""

        name = "trace.event"

    class TracedWithNotification(Subscribable, EventType):
        """An event of which one user is notified."""

        name = "trace.event_with_notification"
        receiver_roles = ["trace_reader"]
        can_web = True

    class TracedHandler(Handler):
        """Do nothing."""

        name = "trace.handler"
        on = [Traced]

        def handle(self, job: ClaimedJob) -> None:
            pass

    @role("trace_reader")
    def trace_reader(event: Any) -> Receivers:
        return Receivers.of([reader.username])

    queues = [TracedHandler.name, "subscriptions.notify", "subscriptions.web"]
    work: dict[str, Callable[[], Any]] = {
        "a job": lambda: enqueue(TracedHandler),
        "an event": lambda: publish(NewEvent(Traced, {})),
        "an event with a notification": lambda: publish(NewEvent(TracedWithNotification, {})),
    }
    reader, _ = User.objects.get_or_create(username="trace")
    EventSubscription.objects.get_or_create(
        event_type=TracedWithNotification.name, role="trace_reader", channel="web", user=reader
    )
    history.make_partitions()
    registry.clear()
    sync_declared.add_missing()
    current_app.loader.import_default_modules()
    recorder = Recorder(settle)
    ways: dict[str, dict[str, int]] = {}

    def all_are_settled() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM tailrace_jobs_live WHERE handler = ANY(%s)", [queues]
            )
            return cursor.fetchone() == (0,) and not active_requests

    def do(kind: str) -> None:
        sys.setprofile(recorder._note)
        work[kind]()
        sys.setprofile(None)
        until = time.monotonic() + PATIENCE
        while not all_are_settled():
            if time.monotonic() > until:
                raise TimeoutError(f"{kind} is not settled within {PATIENCE:g} s")
            time.sleep(0.05)

    def trace() -> None:
        try:
            for kind in work:
                for _ in range(UNTRACED_RUNS):
                    do(kind)
                recorder.start()
                do(kind)
                ways[kind] = recorder.stop()
        finally:
            connection.close()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    @worker_ready.connect(weak=False)
    def start(**kwargs: Any) -> None:
        threading.Thread(target=trace, name="publisher", daemon=True).start()

    recorder.watch_new_threads()
    current_app.Worker(pool="solo", queues=queues, quiet=True, loglevel="ERROR").start()
    sys.setprofile(None)
    return ways


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--in-place", action="store_true", help="use the database of DATABASE_URL")
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "tailrace.config.settings"
    os.environ.setdefault("LOG_LEVEL", "ERROR")
    warnings.simplefilter("ignore")  # Celery's, of a worker of root

    from tailrace.config.startup import boot

    boot.start(own_key="created")

    import django
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    if options.in_place:
        ways = traced_ways()
    else:
        own = setup_databases(verbosity=0, interactive=False)
        try:
            ways = traced_ways()
        finally:
            _end_sessions()
            teardown_databases(own, verbosity=0)
    print(json.dumps(ways, indent=1) if options.json else _as_text(ways))
    return 0 if ways else 1


def _end_sessions() -> None:
    """End the sessions of this process's threads: the database cannot be dropped before."""
    from django.db import connection, connections

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    connections.close_all()


def _as_text(ways: dict[str, dict[str, int]]) -> str:
    parts = []
    for kind, lines in ways.items():
        parts += [f"{count:6} {file}" for file, count in lines.items()]
        parts += [f"{sum(lines.values()):6} lines in {len(lines)} modules for {kind}", ""]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
