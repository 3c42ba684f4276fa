"""A clock that a test moves."""

import time
from datetime import datetime

from tailrace.db import clock


class Clock:
    """Moves the time of the code and of the database statements, of this process.

    The fixture `clock` puts it back after the test.
    """

    _stopped_at: float | None = None

    def stop(self) -> None:
        """From now on time advances by `step` alone: what passes between two steps is undone by
        the second, so that many of them are exact on a slow machine, too."""
        self._stopped_at = time.time() + clock.offset

    def step(self, seconds: float) -> None:
        """Move the time forward, or back if `seconds` is below zero."""
        if self._stopped_at is None:
            clock.offset += seconds
        else:
            self._stopped_at += seconds
            clock.offset = self._stopped_at - time.time()

    def now(self) -> datetime:
        return clock.now()

    def reset(self) -> None:
        """Return to the real time."""
        self._stopped_at = None
        clock.offset = 0.0
