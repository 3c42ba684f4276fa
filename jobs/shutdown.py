"""The end of a worker: no new claims at once, and SHUTDOWN_GRACE seconds for the calls that run.

A service manager sends its signal to the main process of a worker, or to all processes of a group.
Celery's main process answers with a warm shutdown, but tells its children nothing, and a signal to
a child ends it at once. So a child puts the signals off while it works, and learns from the main
process, through shared memory, that the worker is to end.
"""

import mmap
import os
import signal
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import structlog
from billiard import active_children, current_process
from billiard import pool as billiard_pool
from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings

log = structlog.get_logger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)
"""That end a worker. Celery's children ignore SIGINT."""
AGAIN_SECONDS = 1.0
"""A signal that came during a drain comes again this long after its end: by then the child has
reported the end to Celery's main process, and it ends by the signal if nothing else has stopped it.
It begins no other drain meanwhile; the tick sends the wake-up of such a drain again."""
STUCK_SECONDS = 1.0
"""After the grace: a call that is still running then cannot be interrupted."""
LAST_SECONDS = 2.0
"""After the grace the main process ends whatever its children do."""
POLL_SECONDS = 0.25

# A child that ends waits for the main process to read the results of its last tasks, which mostly
# does so no more: 2 seconds, instead of 30, for which billiard has no setting. Nothing is in them;
# what became of jobs is settled.
billiard_pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 20  # times 0.1 s

_shared = mmap.mmap(-1, 8)
"""When the main process was asked to end, by time.monotonic() of this machine; 0 if it was not."""
_noted_at: float | None = None
"""When a signal came during a drain of this process."""
_signal_to_repeat = signal.SIGTERM
_deferring = False
_ends_once = False
_lock = threading.Lock()
"""Held while a thread signals the main thread, which then is within `deferred`."""


def requested_at() -> float | None:
    """Return when this process was asked to end, by time.monotonic(); None if it was not."""
    if _noted_at is not None:
        return _noted_at
    [at] = struct.unpack("d", _shared[:8])
    return at or None


def requested() -> bool:
    """Whether this process is to end: it claims nothing and begins no call any more."""
    return requested_at() is not None


def seconds_left() -> float:
    """Return how long calls that run may go on; infinite while nobody asks this process to end."""
    at = requested_at()
    return float("inf") if at is None else at + settings.SHUTDOWN_GRACE - time.monotonic()


def is_stuck() -> bool:
    """Whether the grace is over, and calls that run have not let themselves be interrupted."""
    return seconds_left() < -STUCK_SECONDS


@contextmanager
def deferred() -> Iterator[None]:
    """Put signals that end the process off to the end of the block."""
    global _deferring
    if threading.current_thread() is not threading.main_thread():
        yield  # of a pool of threads: signals reach Celery's own
        return
    previous = {number: signal.signal(number, _note) for number in SIGNALS}
    with _lock:
        _deferring = True
    try:
        yield
    finally:
        with _lock:
            _deferring = False
        for number, handler in previous.items():
            signal.signal(number, handler)
        if _noted_at is not None:
            timer = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), _signal_to_repeat))
            timer.daemon = True
            timer.start()


def end_once() -> None:
    """Let a child end by the first signal: a second one, as a cold shutdown sends it, would end it
    while it hands back the calls that it has in flight. To be called by each task."""
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
    """Let the main thread know of a shutdown that the main process was asked for. Any thread."""
    with _lock:
        if _deferring and _noted_at is None and requested():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def arm(seconds: float) -> None:
    """Set the alarm of a call that may take so long, or as long as the shutdown leaves it. Main
    thread only."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if requested():  # looked at after the timer was set: a signal from now on shortens it itself
        signal.setitimer(signal.ITIMER_REAL, max(min(seconds, seconds_left()), 0.001))


def _note(signum: int, frame: FrameType | None) -> None:
    global _noted_at, _signal_to_repeat
    if _noted_at is not None:
        return
    _noted_at = requested_at() or time.monotonic()
    _signal_to_repeat = signal.Signals(signum)
    left, _interval = signal.getitimer(signal.ITIMER_REAL)
    if left:  # a call runs
        arm(left)


@worker_shutting_down.connect
def _tell_children(**kwargs: Any) -> None:
    if not requested():
        _shared[:8] = struct.pack("d", time.monotonic())


@worker_ready.connect
def _watch_main_process(**kwargs: Any) -> None:
    threading.Thread(target=_end_in_time, name="shutdown", daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        for number in (*SIGNALS, signal.SIGINT):
            _tell_children_first(number)


def _tell_children_first(number: signal.Signals) -> None:
    """Let the children know of this signal before Celery handles it: a cold shutdown waits for them
    before it says so, and meanwhile replaces those that have ended."""
    handle = signal.getsignal(number)

    def tell(signum: int, frame: FrameType | None) -> None:
        _tell_children()
        if callable(handle):
            handle(signum, frame)

    if callable(handle):
        signal.signal(number, tell)


def _end_in_time() -> None:
    """End the main process some time after the grace, and its children with it: one that hangs
    where no signal reaches it must not keep the others from being started again."""
    while seconds_left() > -LAST_SECONDS:
        time.sleep(POLL_SECONDS)
    children = [child.pid for child in active_children() if child.pid]
    log.error("shutdown.forced", children=len(children), grace=settings.SHUTDOWN_GRACE)
    for pid in children:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(pid, signal.SIGKILL)
    os._exit(1)
