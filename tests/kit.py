"""What the tests share: waiting with a bound, threads with connections, real workers."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from amqp.exceptions import ChannelError
from django.db import connection, connections
from django.db.models import Max
from psycopg import conninfo

from tailrace.db.query import query
from tailrace.events.models import Event
from tailrace.jobs import tasks
from tailrace.jobs.engine import drain, registry
from tailrace.jobs.engine.claiming import claim, pace
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Queue, QueueActivity
from tailrace.jobs.testing.perform import run_and_settle, verdicts_on
from tests import forks

__all__ = ["run_and_settle", "verdicts_on"]

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 180.0
"""Seconds that a test waits for what takes moments on an idle machine. Nothing is expected to take
so long: only a test that fails waits until the end."""


def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "") -> Any:
    """Return the condition's first true value; fail after `seconds`, at least PATIENCE, without.

    It looks the less often the longer it has waited, and the longer a look takes: a condition may
    cost what it waits for.
    """
    seconds, began = max(seconds, PATIENCE), time.monotonic()
    while True:
        looked = time.monotonic()
        if value := condition():
            return value
        now = time.monotonic()
        waited = now - began
        if waited > seconds:
            raise AssertionError(f"not within {seconds:g} s: {what or condition}")
        pause = min(max(0.02, waited / 20), 0.2)
        time.sleep(max(pause, min(4 * (now - looked), 1)))


def at_once(count: int, work: Callable[[int], Any], seconds: float = PATIENCE) -> list[Any]:
    """Run `work(number)` in that many threads at the same time, each with its own connection.

    Returns what they returned, in the order of their numbers, or raises what the first one raised.
    """
    barrier = threading.Barrier(count)
    answers: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait(seconds)
            answers[number] = work(number)
        except BaseException as error:  # raised in the test below
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), f"a thread hangs after {seconds:g} s"
    if errors:
        raise errors[0]
    return answers


@contextmanager
def another_transaction(statement: str, *params: Any) -> Iterator[Any]:
    """Execute a statement in a transaction of another connection, which ends with the block."""
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute(statement, params)
            yield other
        other.rollback()
    finally:
        other.close()


@contextmanager
def repeated(work: Callable[[], Any], wait: float) -> Iterator[None]:
    """Repeat the call in a thread with its own connection until the block ends."""
    done, errors = threading.Event(), []

    def run() -> None:
        try:
            while not done.wait(wait):
                work()
        except BaseException as error:  # raised in the test below
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        if errors:  # the reason of whatever else went wrong
            raise errors[0]


@contextmanager
def held(sql: str, *params: Any) -> Iterator[int]:
    """Keep the locks that a statement takes, in an open transaction of another session; give its
    process id."""
    connection.ensure_connection()
    dsn = conninfo.make_conninfo(connection.connection.info.dsn)
    with psycopg.connect(dsn, application_name="psql") as other:
        other.execute(sql, params)
        yield other.info.backend_pid
        other.rollback()


def sessions_that_wait(*tables: str) -> int:
    """How many sessions of this database wait for a lock; with `tables`, for one on these."""
    if tables:
        # Databases copied from one template have the same oids for their tables.
        [(count,)] = query(
            "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND relation = ANY(%(tables)s::regclass[])",
            tables=list(tables),
        )
        return int(count)
    query("SELECT pg_stat_clear_snapshot()")
    [(count,)] = query(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return int(count)


class Worker:
    """A real `celery worker` in its own session, with its output in a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, node: str) -> None:
        self.process, self.log, self.node = process, log, node

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def signal(self, number: int) -> None:
        """Send it to the main process and all its children."""
        os.killpg(self.process.pid, number)

    def stop(self, seconds: float = PATIENCE) -> int:
        """Stop it as an operator does; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait(PATIENCE)


@contextmanager
def worker(
    env: dict[str, str],
    queues: Sequence[str],
    *,
    log: Path,
    concurrency: int = 1,
    pool: str = "prefork",
    warm: bool = True,
    options: Sequence[str] = (),
) -> Iterator[Worker]:
    """Start a worker that serves these queues alone, wait until it is ready, kill it at the end.

    `env` is the fixture `process_env`, so it works on the test's own database and broker. `warm`:
    it is forked from a process that has done its imports (tests/forks.py). `options`: more words of
    its command line.
    """
    node = f"{log.stem}-{os.getpid()}-{time.monotonic_ns()}@test"
    arguments = ["-A", "tailrace.config", "worker", "-Q", ",".join(queues), "-n", node]
    arguments += [
        "--concurrency",
        str(concurrency),
        "--pool",
        pool,
        "--loglevel",
        "INFO",
        "--without-mingle",
        *options,
    ]
    process = forks.start_celery(arguments, env, log, warm=warm)
    started = Worker(process, log, node)
    try:
        wait_until(lambda: _ready(started), what="the worker's first pulse")
        yield started
    except BaseException:
        sys.stderr.write(f"--- {node}\n{started.output[-6000:]}\n")
        raise
    finally:
        started.kill()


def _ready(started: Worker) -> bool:
    assert started.process.poll() is None, f"the worker ended:\n{started.output[-4000:]}"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM tailrace_jobs_pulse WHERE name LIKE %s", [f"worker:{started.node} %"]
        )
        return cursor.fetchone() is not None


def broker_length(queue: str) -> int:
    """Return the number of messages that wait in this queue at the real broker."""
    from celery import current_app

    with current_app.connection_for_read() as broker, broker.channel() as channel:
        declared = current_app.amqp.queues[queue](channel)
        try:
            return int(declared.queue_declare(passive=True).message_count)
        except ChannelError:  # on Redis an empty queue does not exist
            return 0


def empty_broker(*others: str) -> None:
    """Delete all messages of all our queues, and of these others."""
    from celery import current_app

    tasks.declare_queues()  # of the handlers of test modules, too
    with current_app.connection_for_write() as broker:
        channel = broker.channel()
        queues = current_app.amqp.queues
        for queue in [*queues.values(), *(queues[name] for name in others)]:
            try:
                queue(channel).purge()
            except broker.channel_errors:  # RabbitMQ has none of this name, and closed the channel
                channel = broker.channel()


def claimed(name: str, limit: int | None = None) -> list[ClaimedJob]:
    """Claim as a drain of this queue does, with the queue's present limits."""
    handler = registry.get(name)
    limits = drain.begin(handler)
    count = limit or pace.largest_batch(handler)
    return [] if limits is None else claim.claim(handler, limits, count)


def change_queue(name: str, **fields: Any) -> str:
    """Change a queue: what operators edit, and what its wake-ups and drains write."""
    activity = {field.name for field in QueueActivity._meta.fields}
    ours = {key: fields.pop(key) for key in fields.keys() & activity}
    if fields:
        assert Queue.objects.filter(pk=name).update(**fields)
    if ours:
        assert QueueActivity.objects.filter(name=name).update(**ours)
    return name


def end_older_transactions() -> None:
    """Let all events be older than each transaction that runs, as if they were recorded long ago.

    Transactions of this database are waited for. Those of others, such as of tests that run beside
    this one, may take as long as they like.
    """
    wait_until(
        lambda: (
            not query(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
                " AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()"
            )
        ),
        what="transactions of this database have ended",
    )
    [(oldest,)] = query("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    Event.objects.filter(xact__gte=oldest).update(xact=oldest - 1)


def wait_for_older_transactions() -> None:
    """Wait until no transaction runs any more that is as old as the newest event.

    Those of all databases of the server count, such as those of tests that run beside this one.
    """
    newest = Event.objects.aggregate(newest=Max("xact"))["newest"] or 0
    oldest = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
    wait_until(lambda: query(oldest)[0][0] > newest, 120, "older transactions have ended")
