"""Async handlers: many calls in flight in each worker process, while its Celery tasks go on.

A process has one event loop, in a thread, where the code of these handlers runs, and one thread of
the engine, which claims, settles and wakes. The Celery task of an async handler only rings: it lets
the engine's thread look at the queue, and ends at once. So whatever the calls wait for, the process
works on its other queues.
"""

import os
import threading
import time

from tailrace.jobs.engine import wake
from tailrace.jobs.engine.in_flight.engine import InFlight

PASS_ON_SECONDS = 0.03
"""How long a message needs to reach another process."""

_lock = threading.Lock()
_in_flight: InFlight | None = None
_is_ending = False


def ring(name: str) -> None:
    """Let this process look at the queue of an async handler; returns at once.

    But if it has no place for more, it sends the message on, and keeps its Celery task for a moment
    so that the message reaches another process: Celery gives it to the first that is idle.
    """
    global _in_flight
    with _lock:
        if _is_ending:
            return  # the tick sends the message again
        if _in_flight is None:
            _in_flight = InFlight()
        pass_on = _in_flight.ring(name)
    if pass_on:
        wake.deliver([name])
        time.sleep(PASS_ON_SECONDS)


def shut_down(grace_seconds: float) -> None:
    """Claim nothing more; let the calls in flight end within the grace, interrupt the rest and hand
    their jobs back, uncharged and due at once. Returns when all is settled."""
    global _in_flight, _is_ending
    with _lock:
        _is_ending = True
        in_flight, _in_flight = _in_flight, None
    if in_flight is not None:
        in_flight.shut_down(grace_seconds)


def _begin() -> None:
    global _lock, _in_flight, _is_ending
    _lock, _in_flight, _is_ending = threading.Lock(), None, False


os.register_at_fork(after_in_child=_begin)  # its threads are the parent's
