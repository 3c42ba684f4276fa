"""Shut down a worker: stop claiming at once, and give running calls SHUTDOWN_TIMEOUT seconds.

A service manager sends its signal to the main process of a worker, or to all processes of a group.
Celery's main process then begins a warm shutdown without notifying its children, and a signal to a
child ends the child at once. So a child defers signals while it works, and the main process
notifies it of the shutdown through shared memory.
"""

import mmap
import os
import signal
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from billiard import current_process

from tailrace.environment.conf import conf

SIGNALS = (signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)
"""The signals that end a worker. Celery's children ignore SIGINT."""
AGAIN_SECONDS = 1.0
"""A signal that arrives during a drain is sent again this many seconds after the drain. By then the
child has reported the end of its task to Celery's main process, so the signal may end it. Until
then it begins no other drain; the tick sends the wake-up for a skipped drain again."""
STUCK_SECONDS = 1.0
"""A call that is still running this many seconds after the timeout cannot be interrupted."""

_shared = mmap.mmap(-1, 8)
"""When the shutdown of the main process began, by time.monotonic() of this machine; 0: not yet."""
_signalled_at: float | None = None
"""When a signal arrived during a drain of this process, by time.monotonic()."""
_signal_to_repeat = signal.SIGTERM
_deferring = False
_ends_once = False
_lock = threading.Lock()
"""Held while a thread signals the main thread, so that the main thread stays within `deferred`."""


def requested_at() -> float | None:
    """Return when the shutdown of this process was requested, by time.monotonic(), or None."""
    if _signalled_at is not None:
        return _signalled_at
    [at] = struct.unpack("d", _shared[:8])
    return at or None


def begin() -> None:
    """Begin the shutdown of this main process, and notify its children. May be called again."""
    if not requested():
        _shared[:8] = struct.pack("d", time.monotonic())


def requested() -> bool:
    """Whether this process is shutting down: it must not claim jobs or begin calls."""
    return requested_at() is not None


def seconds_left() -> float:
    """Return how many seconds running calls may still take: infinite if no shutdown is requested,
    negative after the timeout."""
    at = requested_at()
    return float("inf") if at is None else at + conf.SHUTDOWN_TIMEOUT - time.monotonic()


def is_stuck() -> bool:
    """Whether the timeout ended more than STUCK_SECONDS ago: calls that still run cannot be
    interrupted."""
    return seconds_left() < -STUCK_SECONDS


@contextmanager
def deferred() -> Iterator[None]:
    """Defer signals that end the process to the end of the block."""
    global _deferring
    if threading.current_thread() is not threading.main_thread():
        yield  # a pool of threads: only Celery's main thread gets signals
        return
    previous = {number: signal.signal(number, _note_signal) for number in SIGNALS}
    with _lock:
        _deferring = True
    try:
        yield
    finally:
        with _lock:
            _deferring = False
        for number, handler in previous.items():
            signal.signal(number, handler)
        if _signalled_at is not None:
            timer = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), _signal_to_repeat))
            timer.daemon = True
            timer.start()


def end_once() -> None:
    """Make a child ignore signals after the first one. A cold shutdown sends a second signal, which
    would end the child while it hands its calls in flight back. Each task must call this."""
    global _ends_once
    is_child = current_process().name != "MainProcess"
    if _ends_once or not is_child or threading.current_thread() is not threading.main_thread():
        return
    _ends_once = True
    for number in SIGNALS:
        signal.signal(number, partial(_end, signal.getsignal(number)))


def _end(handle: Any, signum: int, frame: FrameType | None) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if callable(handle):
        handle(signum, frame)
    else:
        raise SystemExit(-signum)


def pass_on() -> None:
    """Signal the main thread of this child if the main process is shutting down. May be called by
    any thread."""
    with _lock:
        if _deferring and _signalled_at is None and requested():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def arm(seconds: float) -> None:
    """Set an alarm in `seconds`, or at the end of the timeout if that is earlier. For the main
    thread."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if requested():  # checked after the timer is set: `_note_signal` shortens a timer that is set
        signal.setitimer(signal.ITIMER_REAL, max(min(seconds, seconds_left()), 0.001))


def _note_signal(signum: int, frame: FrameType | None) -> None:
    global _signalled_at, _signal_to_repeat
    if _signalled_at is not None:
        return
    _signalled_at = requested_at() or time.monotonic()
    _signal_to_repeat = signal.Signals(signum)
    left, _interval = signal.getitimer(signal.ITIMER_REAL)
    if left:  # a call is running
        arm(left)
