"""A clock that a test can move."""

import time
from datetime import datetime

from tailrace.db import clock


class Clock:
    """Moves the time of this process, for its code and for its database statements."""

    _stopped_at: float | None = None

    def stop(self) -> None:
        """From now on, only the steps count: each step moves the time on from the last step, or
        from this call, however much real time has passed."""
        self._stopped_at = time.time() + clock.offset

    def step(self, seconds: float) -> None:
        """Move the time forward, or back if `seconds` is negative."""
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
