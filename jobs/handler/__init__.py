"""The parts of a handler: the base class, schedules, the backoff, the claimed job that the handler
gets, and the outcomes that it raises."""

from tailrace.jobs.handler.backoff import Backoff
from tailrace.jobs.handler.handler import (
    LOWEST_PRIORITY,
    MERGES,
    NO_LANE,
    ClaimedJob,
    Handler,
)
from tailrace.jobs.handler.outcomes import (
    Cancel,
    CancelRequested,
    Completed,
    Interrupted,
    LeaseLost,
    Outcome,
    Permanent,
    Retry,
    Skip,
    Snooze,
    TimeLimitExceeded,
)
from tailrace.jobs.handler.parents import Parent, Parents
from tailrace.jobs.handler.schedule import Cron, Every

__all__ = [
    "LOWEST_PRIORITY", "MERGES", "NO_LANE", "Backoff", "Cancel", "CancelRequested", "ClaimedJob",
    "Completed", "Cron", "Every", "Handler", "Interrupted", "LeaseLost", "Outcome", "Parent",
    "Parents", "Permanent", "Retry", "Skip", "Snooze", "TimeLimitExceeded",
]  # fmt: skip
