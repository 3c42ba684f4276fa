"""A limit of requests that wait (long polling), so that threads stay free for other requests."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings


class WaitingPlaces:
    """Limits how many requests wait in this process, and to half as many (at least 1) per user."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.per_user = max(1, places // 2)
        self._lock = threading.Lock()
        self._taken: Counter[int] = Counter()

    @property
    def taken(self) -> int:
        return self._taken.total()

    @contextmanager
    def place(self, user: int) -> Iterator[bool]:
        """Count a waiting request of this user while the block runs. Yields False at the limit."""
        with self._lock:
            may_wait = self.taken < self.places and self._taken[user] < self.per_user
            self._taken[user] += may_wait
        try:
            yield may_wait
        finally:
            with self._lock:
                self._taken[user] -= may_wait
                if not self._taken[user]:
                    del self._taken[user]


waiting = WaitingPlaces(max(1, settings.WEB_THREADS // 4))
"""The limit of this process, for all operations that wait."""
