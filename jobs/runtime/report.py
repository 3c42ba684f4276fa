"""Report each failed attempt to the error reporters, with its event, job and handler."""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import structlog
from django.db import connections
from django.utils.module_loading import import_string

from tailrace.environment.conf import conf
from tailrace.jobs.runtime import thread_failures

log = structlog.get_logger(__name__)

MAX_WAITING = 1000
"""Failures that wait in a process while reporters are slow. More are not reported."""
FLUSH_SECONDS = 5
"""How long a process waits for its last reports before it ends."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt. It holds no payload, since reporters send it to other systems.

    Messages may quote payloads: it holds only messages of the classes in JOBS_REPORTED_ERRORS.
    """

    handler: str
    job_id: int
    event_id: int | None
    event_type: str
    routing_key: str
    attempt: int
    max_attempts: int
    claim_no: int
    final: bool
    """True if the job is now `failed`; False if it is tried again in `retry_in` seconds."""
    retry_in: float
    error: str
    """The message, if JOBS_REPORTED_ERRORS contains the class; else empty."""
    error_class: str
    silenced: bool = False
    """True if an operator has silenced failures like this one: only `to_log` reports it."""
    is_logged: bool = False
    """True if the handler's own code has logged the error: `to_log` adds no second one."""
    exception: BaseException | None = None
    """A copy of the exception: see `reported_exception`."""


Reporter = Callable[[Failure], None]


def report_failure(failure: Failure) -> None:
    """Call the reporters. A reporter that raises does not stop the others."""
    for reporter in reporters():
        if failure.silenced and reporter is not to_log:
            continue
        try:
            reporter(failure)
        except Exception:
            log.exception("report.reporter_failed", reporter=getattr(reporter, "__name__", "?"))


def report_later(failures: Sequence[Failure]) -> None:
    """Report these failures in order, in a separate thread."""
    _reports.add(failures)


class _Reports:
    """The failures that wait to be reported, and the thread that reports them."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # the thread stays in the parent
        atexit.register(self.flush)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Failure] = deque()
        self._runs = False

    def add(self, failures: Sequence[Failure]) -> None:
        with self._changed:
            room = MAX_WAITING - len(self._waiting)
            self._waiting.extend(failures[:room])
            starts = bool(self._waiting) and not self._runs
            self._runs |= starts
        if dropped := len(failures[room:]):
            log.error("report.too_slow", not_reported=dropped)
        if starts:
            try:
                threading.Thread(target=self._work, name="report", daemon=True).start()
            except RuntimeError:  # there are too many threads, or the process is ending
                self._empty()

    def flush(self, seconds: float = FLUSH_SECONDS) -> None:
        """Wait until all failures of `report_later` are reported, at most this long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._runs, seconds)

    def _work(self) -> None:
        try:
            thread_failures.keep_running("report", self._empty)
        finally:
            connections.close_all()  # a reporter may have opened some in this thread

    def _empty(self) -> None:
        while failure := self._next():
            report_failure(failure)

    def _next(self) -> Failure | None:
        with self._changed:
            if self._waiting:
                return self._waiting.popleft()
            self._runs = False
            self._changed.notify_all()
            return None


_reports = _Reports()
flush = _reports.flush


@cache
def reporters() -> tuple[Reporter, ...]:
    """Return the callables listed in JOBS_ERROR_REPORTERS."""
    return tuple(import_string(path) for path in conf.JOBS_ERROR_REPORTERS)


def to_log(failure: Failure) -> None:
    """Log the failure. The default reporter."""
    same = (
        "job_id", "event_id", "event_type", "routing_key", "claim_no", "error", "error_class",
    )  # fmt: skip
    write, event = (log.error, "job.failed") if failure.final else (log.warning, "job.retry")
    if failure.is_logged:
        write = log.info
    write(
        event,
        queue=failure.handler,
        attempt=f"{failure.attempt}/{failure.max_attempts}",
        retry_in=None if failure.final else round(failure.retry_in, 1),
        **{name: getattr(failure, name) for name in same},
    )
