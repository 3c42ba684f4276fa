"""Upkeep: threads in the main process of each worker and in each beat that tick, sweep and prune.

Upkeep uses no queue, no message and no worker child, so neither a full pool nor a missing beat
stops it. Each time another process may do it (see `turns`).
"""

import atexit
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import uniform
from typing import Any

import structlog
from celery import current_app
from celery.signals import beat_init, worker_ready, worker_shutdown
from django.db import InterfaceError, OperationalError, connections

from tailrace.db.connections import ENGINE, timed_out
from tailrace.db.engine_database import home
from tailrace.db.limits import reason
from tailrace.db.locks import Blocked
from tailrace.environment.conf import conf
from tailrace.jobs.engine.maintenance import periods, sync_declared
from tailrace.jobs.engine.maintenance.pruning import history
from tailrace.jobs.engine.maintenance.pruning.prune import prune
from tailrace.jobs.engine.maintenance.sweeping.sweep import sweep
from tailrace.jobs.engine.maintenance.ticking.tick import tick
from tailrace.jobs.engine.maintenance.workers import turns
from tailrace.jobs.engine.maintenance.workers.heartbeat import Heartbeat
from tailrace.jobs.runtime import thread_failures

log = structlog.get_logger(__name__)

JITTER = 0.25
"""Part of an interval: processes that did not have the last turn try to take the next one up to
this much later, so that the same process usually keeps it, and they do not all try at once."""
SHORTEST_WAIT, LONGEST_WAIT = 0.05, 30.0
"""Seconds between two attempts to take a turn."""
SLACK = 0.01
"""Seconds that the process with the last turn waits beyond the interval, not to be too early."""
RETRY_SECONDS = 1.0
"""How long to wait after an error, e.g. while the database is away."""
POSTPONED_SECONDS = 15.0
"""When work at the start is tried again after it was blocked by a lock."""
REPEAT_SECONDS = 60.0
"""A repeated error is logged again after this time."""
ALWAYS = "each round"
"""The name of the work `always` in a record of its failure."""
TICK_SECONDS = 1.0
PRUNE_SECONDS = 3600.0
PERIOD_SECONDS = 60.0
"""Seconds between two sums of queue periods."""
HISTORY_SECONDS = 10.0
"""Seconds between two moves of finished jobs to the history."""
FORK_PATIENCE = 0.2
"""How long a fork waits until a thread is idle, so that the child inherits none of its locks."""
END_PATIENCE = 0.5
"""How long the end of the process waits for a thread to close its connection."""


@dataclass(frozen=True, slots=True)
class Duty:
    """A piece of upkeep, and the seconds between two turns. Several processes may do it at once."""

    name: str
    interval: float | Callable[[], float]
    """A function if it depends on a setting, so that a missing setting fails only this duty."""
    work: Callable[[], Any]

    @property
    def seconds(self) -> float:
        return self.interval() if callable(self.interval) else self.interval


class UpkeepThread(threading.Thread):
    """A thread that does its duties when it gets their turns. No error ends it, and a duty that
    fails does not stop the others. It has its own connection, which stays open and limits the time
    of each statement and each wait for a lock. `always` is called before the duties; it returns the
    seconds until it should be called again. `at_end` is called when the thread is asked to end."""

    def __init__(
        self,
        name: str,
        by: str,
        duties: Sequence[Duty],
        *,
        statement_seconds: float,
        lock_seconds: float,
        always: Callable[[], float] = lambda: LONGEST_WAIT,
        at_end: Callable[[], Any] = lambda: None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.by, self.duties = by, duties
        self.limits = {
            "statement_timeout": int(statement_seconds * 1000),
            "lock_timeout": int(lock_seconds * 1000),
            "idle_in_transaction_session_timeout": int(statement_seconds * 1000),
        }
        self.always, self.at_end = always, at_end
        self.at_rest = threading.Lock()
        """Held by the thread while it works."""
        self._stopping = threading.Event()
        self._due = {duty.name: 0.0 for duty in duties}
        self._error, self._logged_at = "", 0.0
        self._failing: dict[str, float] = {}
        """Work whose failure is recorded, until it succeeds, and when a failure is recorded again,
        by time.monotonic()."""

    def stop(self) -> None:
        """Ask the thread to end, without waiting for its current work."""
        self._stopping.set()

    def run(self) -> None:
        thread_failures.keep_running(self.name, self._work, self._stopping)

    def _work(self) -> None:
        self._own_session()
        try:
            while not self._stopping.is_set():
                with self.at_rest:
                    pause = self._look()
                self._stopping.wait(pause)
            self.at_end()
        finally:
            connections[home()].close()

    def _own_session(self) -> None:
        """Give this thread its own default connection with its own limits."""
        own = connections.create_connection(home())
        options = dict(own.settings_dict["OPTIONS"])
        pooled = connections[ENGINE].settings_dict["POOLED"]
        if not pooled:  # behind a pooler, the engine's limits go with each statement
            flags = " ".join(f"-c {name}={value}" for name, value in self.limits.items())
            options["options"] = f"{options.get('options', '')} {flags}".strip()
        options["application_name"] = f"tailrace {self.name}"
        own.settings_dict = own.settings_dict | {"OPTIONS": options, "POOLED": pooled}
        connections[home()] = own

    def _look(self) -> float:
        """Do the duties that are due; return the seconds until the next one is due."""
        try:
            works = {ALWAYS: self._always}
            works |= {duty.name: partial(self._turn, duty) for duty in self.duties}
            pause = min(self._guarded(name, work) for name, work in works.items())
        except Exception as error:
            self._failed(error)
            return RETRY_SECONDS * uniform(1, 1 + JITTER)  # noqa: S311
        if self._error:
            log.info("upkeep.continues", thread=self.name)
            self._error = ""
        return max(pause, SHORTEST_WAIT)

    def _guarded(self, name: str, work: Callable[[], float]) -> float:
        """Return the result of `work`. An error is recorded, and the other work is done. If the
        database does not answer, it is raised: then nothing else can be done, either."""
        try:
            return work()
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            connections[home()].close()
            if time.monotonic() >= self._failing.get(name, 0.0):
                self._failing[name] = time.monotonic() + REPEAT_SECONDS
                thread_failures.record(f"{self.name}: {name}", error, self._shown_seconds(name))
            return RETRY_SECONDS * uniform(1, 1 + JITTER)  # noqa: S311

    def _shown_seconds(self, name: str) -> float:
        """Return for how long a failure is shown: until the next turn has failed, too."""
        intervals = (duty.interval for duty in self.duties if duty.name == name)
        known = [each for each in intervals if not callable(each)]
        return max([thread_failures.SHOWN_SECONDS, *(2 * each for each in known)])

    def _always(self) -> float:
        pause = self.always()
        self._succeeded(ALWAYS)
        return pause

    def _turn(self, duty: Duty) -> float:
        now = time.monotonic()
        if now < self._due[duty.name]:
            return self._due[duty.name] - now
        self._due[duty.name] = now + RETRY_SECONDS
        interval = duty.seconds
        mine, wait = turns.take(duty.name, interval, self.by)
        if mine:
            wait += SLACK
            duty.work()
            self._succeeded(duty.name)
        else:
            wait += uniform(0, JITTER * interval)  # noqa: S311
        self._due[duty.name] = now + min(wait, LONGEST_WAIT)
        return self._due[duty.name] - time.monotonic()

    def _succeeded(self, name: str) -> None:
        if name in self._failing:
            thread_failures.clear(f"{self.name}: {name}")
            del self._failing[name]

    def _failed(self, error: Exception) -> None:
        connections[home()].close()
        words = f"{type(error).__name__}: {str(error).strip()}"
        if words != self._error or time.monotonic() - self._logged_at > REPEAT_SECONDS:
            log.warning("upkeep.failed", thread=self.name, error=words)
            self._error, self._logged_at = words, time.monotonic()


class Upkeep:
    """The upkeep threads of this process."""

    def __init__(self) -> None:
        self._threads: list[UpkeepThread] = []
        self._resting: list[UpkeepThread] = []
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._after_fork,
            after_in_child=self._in_child,
        )
        atexit.register(self.stop)

    def start(
        self,
        node: str,
        heartbeat: Heartbeat | None = None,
        once: Sequence[Callable[[], Any]] = (),
    ) -> None:
        """Start the threads. `node` identifies this process in the rows of turns. The functions in
        `once` are called until each has succeeded once. A worker has a heartbeat."""
        by = f"{node} ({socket.gethostname()}:{os.getpid()})"
        quick = [Duty("tick", TICK_SECONDS, tick)]
        slow = [
            Duty("sweep", lambda: conf.JOBS_SWEEP_SECONDS, sweep),
            Duty("prune", PRUNE_SECONDS, prune),
            Duty("periods", PERIOD_SECONDS, periods.add_up),
            Duty("history", HISTORY_SECONDS, history.move),
        ]
        beats: dict[str, Any] = {}
        if heartbeat is not None:
            beats = {"always": heartbeat.beat, "at_end": heartbeat.remove}
        work_once = _once(*once)
        self._threads = [
            UpkeepThread("tick", by, quick, statement_seconds=10, lock_seconds=1, **beats),
            UpkeepThread("sweep", by, slow, statement_seconds=60, lock_seconds=2, always=work_once),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads; a busy thread ends with the process."""
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.stop()
        until = time.monotonic() + END_PATIENCE
        for thread in threads:
            thread.join(max(until - time.monotonic(), 0))

    def _before_fork(self) -> None:
        until = time.monotonic() + FORK_PATIENCE
        self._resting = [
            thread
            for thread in self._threads
            if thread.at_rest.acquire(timeout=max(until - time.monotonic(), 0))
        ]

    def _after_fork(self) -> None:
        for thread in self._resting:
            thread.at_rest.release()
        self._resting = []

    def _in_child(self) -> None:
        self._threads, self._resting = [], []


def _once(*works: Callable[[], Any]) -> Callable[[], float]:
    """Return a function for `always` that calls each of these until it has succeeded once. One that
    a lock blocks is tried again later, and the thread does its duties."""
    left = list(works)

    def do() -> float:
        for work in tuple(left):
            try:
                work()
                left.remove(work)
            except OperationalError as error:
                if not (isinstance(error, Blocked) or timed_out(error)):
                    raise
                log.warning("upkeep.postponed", work=work.__name__, error=reason(error))
        return POSTPONED_SECONDS if left else LONGEST_WAIT

    return do


upkeep = Upkeep()


@worker_ready.connect
def _at_start_of_worker(sender: Any, **kwargs: Any) -> None:
    """`sender` is Celery's Consumer."""
    heartbeat = Heartbeat(
        sender.hostname, lambda: list(current_app.amqp.queues.consume_from), sender.pool
    )
    upkeep.start(sender.hostname, heartbeat, once=[sync_declared.add_missing_queues])


@beat_init.connect
def _at_start_of_beat(**kwargs: Any) -> None:
    upkeep.start("beat", once=[sync_declared.add_missing])


@worker_shutdown.connect
def _at_end_of_worker(**kwargs: Any) -> None:
    upkeep.stop()
