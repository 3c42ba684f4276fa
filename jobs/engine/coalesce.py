"""Do in a thread of the process what is left after commits, so that no publisher waits for it.

Requests that arrive while it works, or before its next turn, become one call. A crash of the
process loses them: so wake-ups, which the tick finds, and counts.
"""

import atexit
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import structlog
from celery.signals import worker_process_shutdown

from tailrace.db import connections

log = structlog.get_logger(__name__)

T = TypeVar("T", int, str)

IDLE_SECONDS = 30
"""A thread with nothing to do ends after this and closes its database connection."""
FLUSH_SECONDS = 5
"""How long a process that ends waits for its last calls."""
ITEMS_LOGGED = 10
"""Items that the log names when a call failed."""


class Coalescer(Generic[T]):
    """Calls `work(items)`, with how often each item was requested, in a thread of its own, which
    starts with the first request. Between two calls are at least `pace` seconds."""

    def __init__(
        self,
        name: str,
        work: Callable[[Counter[T]], Any],
        *,
        pace: float,
        flush_at_exit: bool = True,
    ) -> None:
        self._name = name
        self._call: Callable[[Counter[T]], Any] = work
        self._pace = pace
        self._begin()
        # After a fork the thread is the parent's, and the lock may be held for ever.
        os.register_at_fork(after_in_child=self._begin)
        if flush_at_exit:
            atexit.register(self.flush)
            worker_process_shutdown.connect(self._at_end_of_worker)  # such a process skips atexit

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._called_at = 0.0
        self._items: Counter[T] = Counter()
        self._runs = False
        self._busy = False

    def request(self, items: Iterable[T]) -> None:
        """Call `work` with these soon; at once and in this thread if no other can be started. A
        mapping says how often each is requested."""
        with self._changed:
            if not self._items:
                self._changed.notify_all()
            self._items.update(items)
            if self._runs or not self._items:
                return
            self._runs = True
        try:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        except RuntimeError:
            self._empty(patience=0)

    def is_busy(self) -> bool:
        """Whether a request is not done yet."""
        return bool(self._items) or self._busy

    def is_flushing(self) -> bool:
        """Whether somebody waits until all requests are done."""
        return self._hurry.is_set()

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all requests are done; return whether that was within `seconds`."""
        self._hurry.set()
        with self._changed:
            done = self._changed.wait_for(lambda: not (self._items or self._busy), seconds)
        self._hurry.clear()
        return done

    def _work(self) -> None:
        with connections.engine():
            self._empty(IDLE_SECONDS)
            connections.current().close()

    def _empty(self, patience: float) -> None:
        while items := self._take(patience):
            try:
                self._call(items)
            except Exception:
                log.exception(f"{self._name}.failed", items=sorted(items)[:ITEMS_LOGGED])
            if connections.current().errors_occurred:
                connections.current().close_if_unusable_or_obsolete()

    def _take(self, patience: float) -> Counter[T]:
        """Return what is requested within `patience` seconds; if nothing, the thread ends."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            requested = self._changed.wait_for(lambda: bool(self._items), patience)
        if requested and (early := self._called_at + self._pace - time.monotonic()) > 0:
            self._hurry.wait(early)
        with self._changed:
            self._called_at = time.monotonic()
            items, self._items = self._items, Counter()
            self._runs = self._busy = bool(items)
            return items

    def _at_end_of_worker(self, **kwargs: Any) -> None:
        self.flush()
