"""Cache the result of an expensive function for a short time, in each process."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """A cache of the last result of `work`.

    One thread calls `work` at a time. Until it returns, other threads get the previous result,
    however old it is; they wait if there is none, or if they need a recent one.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._last: tuple[float, T] | None = None

    def get(self, max_age: float, *, waits: bool = False) -> T:
        """Return a result that is at most `max_age` seconds old; or, unless the caller `waits`, the
        previous result if another thread is working on a new one."""
        last = self._last
        if last is not None and time.monotonic() - last[0] <= max_age:
            return last[1]
        if not self._lock.acquire(blocking=waits or last is None) and last:
            return last[1]
        try:
            if self._last is None or time.monotonic() - self._last[0] > max_age:
                result = self._work()
                self._last = (time.monotonic(), result)
            return self._last[1]
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Discard the result, so that the next call computes it again."""
        self._last = None
