"""waker: one thread per process that wakes queues, so that no publisher waits for it.

What several transactions owe while it is at work becomes one statement, and one message per queue.
A crash that takes the thread along costs latency alone: the tick finds the queues.
"""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog
from celery.signals import worker_process_shutdown
from django.db import connection

log = structlog.get_logger(__name__)

IDLE_SECONDS = 30
"""A thread with nothing to do ends after this, and gives its database connection back."""
PACE_SECONDS = 0.003
"""From one call to the next: a publisher in a loop would else share its processor with as many
statements as it publishes events, which find the queues awake."""
LAST_SECONDS = 5
"""How long a process that ends waits for its last wake-ups."""


class Waker:
    """Calls `wake(names)` in a thread of its own, which begins with the first names."""

    def __init__(self, wake: Callable[[Iterable[str]], Any]) -> None:
        self._wake = wake
        self._begin()
        # After a fork the thread is the parent's, and the lock may be held by nobody.
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self.flush)
        worker_process_shutdown.connect(self._at_end_of_worker)  # such a process skips atexit

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._called_at = 0.0
        self._names: set[str] = set()
        self._runs = False
        self._busy = False

    def ask(self, names: Iterable[str]) -> None:
        """Have these queues woken soon; by the caller and now, where no thread can be started."""
        with self._changed:
            if not self._names:
                self._changed.notify_all()
            self._names.update(names)
            if self._runs or not self._names:
                return
            self._runs = True
        try:
            threading.Thread(target=self._work, name="waker", daemon=True).start()
        except RuntimeError:
            self._empty(patience=0)

    def flush(self, seconds: float = LAST_SECONDS) -> bool:
        """Wait until all that was asked for is done; say whether it was within `seconds`."""
        self._hurry.set()
        with self._changed:
            done = self._changed.wait_for(lambda: not (self._names or self._busy), seconds)
        self._hurry.clear()
        return done

    def _work(self) -> None:
        self._empty(IDLE_SECONDS)
        connection.close()

    def _empty(self, patience: float) -> None:
        while names := self._take(patience):
            try:
                self._wake(names)
            except Exception:
                log.exception("wake.failed", queues=sorted(names))
            if connection.errors_occurred:
                connection.close_if_unusable_or_obsolete()

    def _take(self, patience: float) -> set[str]:
        """Return what is to be woken, asked for within `patience` seconds; if none, the end."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            asked = self._changed.wait_for(lambda: bool(self._names), patience)
        if asked and (early := self._called_at + PACE_SECONDS - time.monotonic()) > 0:
            self._hurry.wait(early)
        with self._changed:
            self._called_at = time.monotonic()
            names, self._names = self._names, set()
            self._runs = self._busy = bool(names)
            return names

    def _at_end_of_worker(self, **kwargs: Any) -> None:
        self.flush()
