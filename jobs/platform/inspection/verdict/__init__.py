"""The verdict on the whole system: healthy, or the causes that keep jobs from being done."""

from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Link
from tailrace.jobs.platform.inspection.verdict.verdict import (
    Health,
    check_of,
    checks,
    current,
    forget,
    work_out,
)

__all__ = [
    "Cause",
    "Check",
    "Health",
    "Link",
    "check_of",
    "checks",
    "current",
    "forget",
    "work_out",
]
