"""Keep what costs some statements for a while, in each process."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """The last result of `work`. One thread works it out; meanwhile the others get the one before,
    or `at_first`."""

    def __init__(self, work: Callable[[], T], at_first: Callable[[], T]) -> None:
        self._work, self._at_first = work, at_first
        self._lock = threading.Lock()
        self._last: tuple[float, T] | None = None

    def get(self, max_age: float) -> T:
        """Return a result that is at most `max_age` seconds old."""
        known = self._last
        if known is not None and time.monotonic() - known[0] <= max_age:
            return known[1]
        if not self._lock.acquire(blocking=known is None):
            return known[1] if known else self._at_first()
        try:
            if self._last is None or time.monotonic() - self._last[0] > max_age:
                result = self._work()
                self._last = (time.monotonic(), result)
            return self._last[1]
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Work it out anew at the next call."""
        self._last = None
