"""SIGTERM during a drain: the call that runs is finished and settled, and none is begun after it.

Celery's main process answers SIGTERM with a warm shutdown, but its children are ended at once by
one of their own. A service manager sends it to all processes of a group, and each call would be
interrupted in the middle, its job left running until its lease ends.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 1.0
"""A signal that came during a drain comes again this long after its end: by then the child has
reported the end to Celery's main process, and it ends by the signal if nothing else has stopped it.
It begins no other drain meanwhile; the tick sends the wake-up of such a drain again."""

_requested = False


def time_is_up(until: float) -> bool:
    """Whether no further call may begin: it is later than `until` (of `time.monotonic()`), or this
    process is to end."""
    return _requested or time.monotonic() >= until


def requested() -> bool:
    """Whether SIGTERM came during a drain of this process, which is to end."""
    return _requested


@contextmanager
def deferred() -> Iterator[None]:
    """Put SIGTERM off to the end of the block; a second one ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # of a pool of threads: signals reach Celery's own
        return

    def note(signum: int, frame: FrameType | None) -> None:
        global _requested
        _requested = True
        signal.signal(signal.SIGTERM, previous)

    previous = signal.signal(signal.SIGTERM, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
        if _requested:
            _send_again()


def _send_again() -> None:
    timer = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGTERM))
    timer.daemon = True
    timer.start()
