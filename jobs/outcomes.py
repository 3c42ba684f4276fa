"""The exceptions by which a handler ends a job in another way than `completed`."""

from datetime import datetime


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
    """Not now: again in `seconds`, or at `until` (aware; by the database's clock). Charges no
    attempt."""

    def __init__(
        self, reason: str = "", *, seconds: float | None = None, until: datetime | None = None
    ) -> None:
        super().__init__(reason)
        if (seconds is None) == (until is None):
            raise TypeError("Snooze takes either seconds= or until=")
        if until is not None and until.tzinfo is None:
            raise ValueError(f"until={until.isoformat()} has no time zone")
        self.seconds = max(seconds or 0.0, 0.0)
        self.until = until


class Skip(Outcome):
    """There is nothing to do, for this reason. Counts as done."""


class Cancel(Outcome):
    """The job was cancelled by an operator, or is no longer needed."""


class Permanent(Outcome):
    """No further try will help: `failed` at once."""


class CancelRequested(Cancel):
    """Raised by `job.check_cancelled()` when an operator cancelled the running job."""


class LeaseLost(Outcome):
    """Raised by `job.check_cancelled()` when another worker has claimed the job: just stop."""


class TimeLimitExceeded(BaseException):
    """The handler's call took longer than its time limit.

    Not an Exception, so that a handler's own `except Exception` does not swallow it.
    """


class Interrupted(BaseException):
    """The worker has to end, and the call was still running after SHUTDOWN_GRACE seconds.

    Its job is pending again at once, charged nothing. Not an Exception: see TimeLimitExceeded.
    """

    def __init__(self) -> None:
        super().__init__("interrupted: its worker had to end")
