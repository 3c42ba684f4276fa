"""The exceptions that a handler raises for an outcome other than completed or failed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


class Outcome(Exception):
    """Raised by a handler to settle its job in another state than `completed`."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Completed:
    """The job is completed, with this result: for `handle_batch`."""

    result: Any = None


class Retry(Outcome):
    """The attempt failed and counts: try again after `after` seconds (None: the handler's backoff).
    After the last attempt the job is `failed`. If it is not `counted`, there is no last attempt."""

    def __init__(
        self, reason: str = "", after: float | None = None, *, counted: bool = True
    ) -> None:
        super().__init__(reason)
        self.after, self.counted = after, counted


class Snooze(Outcome):
    """Run the job again in `seconds`, or at `until` (an aware time, by the database's clock). It
    does not count as an attempt."""

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
    """There is nothing to do, for this reason. Dependent jobs run as after `completed`."""


class Cancel(Outcome):
    """The job was cancelled by an operator, or is no longer needed."""


class Permanent(Outcome):
    """Another attempt would not help: the job is `failed` at once."""


class CancelRequested(Cancel):
    """Raised by `job.check_cancelled()` when an operator cancelled the running job."""


class LeaseLost(Outcome):
    """Raised by `job.check_cancelled()` when another worker has claimed the job. Stop working on
    it: this worker can no longer settle it."""


class TimeLimitExceeded(BaseException):
    """The handler's call took longer than its time limit. Not an Exception, so that a handler's own
    `except Exception` does not swallow it."""


class Interrupted(BaseException):
    """The worker is shutting down, and the call was still running after SHUTDOWN_TIMEOUT seconds.
    The job is pending again at once; no attempt is counted. Not an Exception: see
    TimeLimitExceeded."""

    def __init__(self) -> None:
        super().__init__("interrupted: its worker had to end")
