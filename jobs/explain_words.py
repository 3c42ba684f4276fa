"""Words that explain shares: a reason, and times as people read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.show import ago


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that holds a job up or lets it go on: a code for programs, words for people."""

    code: str
    words: str
    jobs: tuple[int, ...] = ()
    """Other jobs that the words name."""


def when(at: datetime | None) -> str:
    """Return `2026-11-21 08:00:00 UTC (12 s ago)`, or `(in 3 min)` for a time to come."""
    if at is None:
        return "a time that is not recorded"
    distance = ago(at) or ""
    distance = distance if distance.startswith("in ") else f"{distance} ago"
    return f"{at:%Y-%m-%d %H:%M:%S} UTC ({distance})"


def counted(number: int, bound: int) -> str:
    """Return `no job`, `1 job`, `12 jobs`, or `at least 1,000 jobs` once the count was stopped."""
    if number >= bound:
        return f"at least {bound:,} jobs"
    return {0: "no job", 1: "1 job"}.get(number, f"{number} jobs")


def named(ids: Sequence[int], total: int) -> str:
    """Return `job 4`, `jobs 4 and 9`, or `jobs 4, 9, 12 and 7 more`."""
    if len(ids) == 1 == total:
        return f"job {ids[0]}"
    shown = ", ".join(str(id) for id in ids)
    if total > len(ids):
        return f"jobs {shown} and {total - len(ids)} more"
    return f"jobs {shown.rpartition(', ')[0]} and {ids[-1]}" if len(ids) > 1 else f"job {shown}"
