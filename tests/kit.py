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

from amqp.exceptions import ChannelError
from django.db import connection

from jobs import claim, drain, registry, run, settle, tasks
from jobs.claimed import ClaimedJob

ROOT = Path(__file__).resolve().parent.parent


def wait_until(condition: Callable[[], Any], seconds: float = 20, what: str = "") -> Any:
    """Return the condition's first true value; fail when there is none within `seconds`."""
    until = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds:g} s: {what or condition}")
        time.sleep(0.02)


def at_once(count: int, work: Callable[[int], Any], seconds: float = 60) -> list[Any]:
    """Run `work(number)` in that many threads, begun together, each with its own connection.

    Returns what they returned, in the order of their numbers, or raises what the first one raised.
    """
    barrier = threading.Barrier(count)
    answers: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait(seconds)
            answers[number] = work(number)
        except BaseException as error:  # handed on to the test below
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), f"a thread hangs after {seconds:g} s"
    if errors:
        raise errors[0]
    return answers


class Worker:
    """A real `celery worker` in a session of its own, its output in a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, node: str) -> None:
        self.process, self.log, self.node = process, log, node

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def signal(self, number: int) -> None:
        """To the main process and all its children."""
        os.killpg(self.process.pid, number)

    def stop(self, seconds: float = 30) -> int:
        """Ask it to stop, as an operator does; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait(10)


@contextmanager
def worker(
    env: dict[str, str], queues: Sequence[str], *, log: Path, concurrency: int = 1
) -> Iterator[Worker]:
    """Start a worker that serves these queues alone, wait until it is ready, kill it at the end.

    `env` is the fixture `process_env`, so it works on the test's own database and broker.
    """
    node = f"{log.stem}-{os.getpid()}-{time.monotonic_ns()}@test"
    arguments = ["-A", "config", "worker", "-Q", ",".join(queues), "-n", node]
    arguments += ["--concurrency", str(concurrency), "--loglevel", "INFO", "--without-mingle"]
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", *arguments],
            cwd=ROOT,
            env=env,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started = Worker(process, log, node)
    try:
        wait_until(lambda: _ready(started), 40, "the worker's pulse")
        yield started
    except BaseException:
        sys.stderr.write(f"--- {node}\n{started.output[-6000:]}\n")
        raise
    finally:
        started.kill()


def _ready(started: Worker) -> bool:
    assert started.process.poll() is None, f"the worker ended:\n{started.output[-4000:]}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM jobs_pulse WHERE name = %s", [f"worker:{started.node}"])
        return cursor.fetchone() is not None


def broker_length(queue: str) -> int:
    """Return the number of messages that wait in this queue at the real broker."""
    from celery import current_app

    with current_app.connection_for_read() as broker, broker.channel() as channel:
        declared = current_app.amqp.queues[queue](channel)
        try:
            return int(declared.queue_declare(passive=True).message_count)
        except ChannelError:  # on Redis an empty list is none
            return 0


def empty_broker() -> None:
    """Take all messages of all our queues away."""
    from celery import current_app

    tasks.register()  # or Celery knows of none yet
    with current_app.connection_for_write() as broker, broker.channel() as channel:
        for queue in current_app.amqp.queues.values():
            bound = queue(channel)
            bound.declare()
            bound.purge()


def claimed(name: str, limit: int | None = None) -> list[ClaimedJob]:
    """Claim as a drain of this queue does: with the queue's limits as they stand."""
    handler = registry.get(name)
    limits = drain.begin(handler)
    return [] if limits is None else claim.claim(handler, limits, limit)


def run_and_settle(jobs: Sequence[ClaimedJob]) -> dict[int, str]:
    """Run claimed jobs of one handler and settle them together; return their states."""
    return settle.settle(list(run.run(jobs[0].handler, jobs, time.monotonic() + 60)))
