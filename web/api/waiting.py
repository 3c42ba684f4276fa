"""Requests that wait for something to happen: few at a time, so that other threads stay free."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings


class WaitingPlaces:
    """So many requests of a process wait at once, and half as many (at least one) of a user."""

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
        """Take a place for a request of this user while the block runs; False: there is none."""
        with self._lock:
            free = self.taken < self.places and self._taken[user] < self.per_user
            self._taken[user] += free
        try:
            yield free
        finally:
            with self._lock:
                self._taken[user] -= free
                if not self._taken[user]:
                    del self._taken[user]


waiting = WaitingPlaces(max(1, settings.WEB_THREADS // 4))
"""The places of this process, for all operations that wait."""
