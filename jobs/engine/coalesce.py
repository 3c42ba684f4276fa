"""Do work after commits in a thread of the process, so that publishers do not wait for it.

Requests that arrive during a call become one next call. A crash of the process loses them, so it
is for work that may be lost: wake-ups, which the tick sends again, and counts.
"""

import atexit
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from celery.signals import worker_process_shutdown

from tailrace.db import connections
from tailrace.jobs.runtime import thread_failures

T = TypeVar("T", int, str)

IDLE_SECONDS = 30
"""A thread without requests for this long closes its database connection and ends."""
FLUSH_SECONDS = 5
"""How long a process waits for its last calls before it ends."""


class Coalescer(Generic[T]):
    """Calls `work(items)` in a separate thread, which starts with the first request. `items` counts
    the requests of each item. Two calls begin at least `pace` seconds apart."""

    def __init__(
        self,
        name: str,
        work: Callable[[Counter[T]], Any],
        *,
        pace: float,
        flush_at_exit: bool = True,
    ) -> None:
        self._name, self._pace = name, pace
        self._call: Callable[[Counter[T]], Any] = work
        self._begin()
        # After a fork the child has no such thread, and the lock might be held for ever.
        os.register_at_fork(after_in_child=self._begin)
        if flush_at_exit:
            atexit.register(self.flush)
            worker_process_shutdown.connect(self._at_end_of_worker)  # workers do not call atexit

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._called_at = 0.0
        self._items: Counter[T] = Counter()
        self._runs = False
        self._busy = False

    def request(self, items: Iterable[T]) -> None:
        """Call `work` with these items soon. `items` may be a Counter, with the number of requests
        of each item. If no thread can be started, the calling thread does the work at once."""
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
        """Whether there are unfinished requests."""
        return bool(self._items) or self._busy

    def is_flushing(self) -> bool:
        """Whether a caller of `flush` is waiting."""
        return self._hurry.is_set()

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all requests are done; return whether that was within `seconds`."""
        self._hurry.set()
        with self._changed:
            done = self._changed.wait_for(lambda: not (self._items or self._busy), seconds)
        self._hurry.clear()
        return done

    def _work(self) -> None:
        with connections.engine():  # nothing else would start the thread again
            thread_failures.keep_running(self._name, lambda: self._empty(IDLE_SECONDS))
            connections.current().close()

    def _empty(self, patience: float) -> None:
        while items := self._take(patience):
            try:
                self._call(items)
            except BaseException as error:  # such as SystemExit
                thread_failures.record(self._name, error)
            if connections.current().errors_occurred:
                connections.current().close_if_unusable_or_obsolete()

    def _take(self, patience: float) -> Counter[T]:
        """Return the items that are requested within `patience` seconds. If there are none, the
        thread ends."""
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
