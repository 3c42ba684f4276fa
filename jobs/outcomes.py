"""What a handler says about a job that it cannot simply complete: the name tells what is next."""

from datetime import datetime, timedelta

from events import clock


class Outcome(Exception):
    """Raised by a handler to settle its job in another way than `completed`."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class Retry(Outcome):
    """The destination failed: try again after `after` seconds (None: the handler's backoff).

    Counts as an attempt; the last one ends in `failed`.
    """

    def __init__(self, reason: str = "", after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Snooze(Outcome):
    """Not now: again in `seconds`, or at `until` (aware). Charges no attempt."""

    def __init__(
        self, reason: str = "", *, seconds: float | None = None, until: datetime | None = None
    ) -> None:
        super().__init__(reason)
        if (seconds is None) == (until is None):
            raise TypeError("Snooze takes either seconds= or until=")
        if until is not None:
            seconds = (until - clock.now()) / timedelta(seconds=1)
        self.seconds = max(seconds or 0.0, 0.0)


class Skip(Outcome):
    """There is nothing to do, for this reason. Counts as done."""


class Cancel(Outcome):
    """The job was asked to stop, or found that nobody wants it any more."""


class Permanent(Outcome):
    """No further try will help: `failed` at once."""


class CancelRequested(Cancel):
    """Raised by `job.check_cancelled()` when an operator asked the running job to stop."""


class LeaseLost(Outcome):
    """Raised by `job.check_cancelled()` when the job is another worker's now: just stop."""


class TimeLimitExceeded(BaseException):
    """The handler's call took longer than its time limit.

    Not an Exception, so that a handler's own `except Exception` does not swallow it.
    """
