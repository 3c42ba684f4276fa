"""The time limits of a call, and its interruption when it is revoked."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from celery.exceptions import SoftTimeLimitExceeded

from tailrace.db.sessions.session_statements import cancel_statements
from tailrace.jobs.handler import TimeLimitExceeded
from tailrace.jobs.runtime import shutdown


class Terminated(BaseException):
    """The call was revoked while it ran. Not an Exception: see TimeLimitExceeded."""


class Limits:
    """The limits of one call, in seconds; None: no limit. The engine's own limit of the call is
    far beyond."""

    def __init__(self, hard: float | None, soft: float | None, engine: float) -> None:
        now = time.monotonic()
        self._hard = now + (hard or engine)
        self._soft = now + soft if soft else None
        self._hard_seconds = hard
        self._terminated = False
        self._ended = False
        self._lock = threading.Lock()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Interrupt the block at its limits, at the end of the grace of a shutdown, or when another
        thread calls `terminate`. Only the main thread can be interrupted: see `handler_call`."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        outer = signal.getsignal(signal.SIGALRM)

        def interrupt(signum: int, frame: FrameType | None) -> None:
            if shutdown.seconds_left() <= 0 and callable(outer):
                outer(signum, frame)
            now = time.monotonic()
            if self._terminated:
                cancel_statements()
                raise Terminated
            if now >= self._hard:
                cancel_statements()
                raise TimeLimitExceeded(
                    f"took longer than its time limit of {self._hard_seconds} s"
                )
            if self._soft is not None and now >= self._soft:
                self._soft = None
                self._arm()
                cancel_statements()
                raise SoftTimeLimitExceeded
            self._arm()

        signal.signal(signal.SIGALRM, interrupt)
        self._arm()
        try:
            yield
        finally:
            with self._lock:
                self._ended = True
            signal.signal(signal.SIGALRM, outer)
            shutdown.arm(max(self._hard - time.monotonic(), 1.0))

    def terminate(self) -> None:
        """Interrupt the block with Terminated. For another thread."""
        with self._lock:
            if not self._ended:
                self._terminated = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    def _arm(self) -> None:
        at = self._hard if self._soft is None else min(self._soft, self._hard)
        shutdown.arm(max(at - time.monotonic(), 0.001))
