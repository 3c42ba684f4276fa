"""Format durations, times, sizes, counts and states of jobs for pages and commands."""

from datetime import datetime
from typing import Protocol

from django.utils import timezone
from django.utils.html import format_html

from tailrace.db import clock
from tailrace.jobs.runtime.states import State

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def duration(seconds: float | None) -> str:
    """Return seconds as `850 ms`, `12 s`, `3 min`, `5 h` or `2 d`; a dash for None."""
    if seconds is None:
        return "–"
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def ago(at: datetime | None) -> str:
    """Return how long ago a time was: `12 s ago`, or `in 3 min` for a future time."""
    if at is None:
        return "–"
    seconds = (clock.now() - at).total_seconds()
    if seconds < -1:
        return f"in {duration(-seconds)}"
    return "now" if seconds < 1 else f"{duration(seconds)} ago"


def time_ago(at: datetime | None) -> str:
    """Return how long ago a time was, with the time itself on hover, as HTML."""
    if at is None:
        return "–"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', at.isoformat(), timestamp(at), ago(at)
    )


def timestamp(at: datetime | None) -> str:
    """Return a time as `2026-11-21 08:00:00 UTC`; a dash for None.

    The time zone is Django's current one: the user's on the user's own pages, else UTC.
    """
    return "–" if at is None else f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}"


def when(at: datetime | None) -> str:
    """Return `2026-11-21 08:00:00 UTC (12 s ago)`, or `(in 3 min)` for a future time."""
    return "a time that is not recorded" if at is None else f"{timestamp(at)} ({ago(at)})"


def memory(size: int) -> str:
    """Return bytes as `180 MB`; a dash for 0."""
    return f"{size / 1024**2:,.0f} MB" if size else "–"


def size(number: int) -> str:
    """Return bytes as `48 kB`, `180 MB` or `1.2 GB`; a dash for 0."""
    for unit, name in ((1024**3, "GB"), (1024**2, "MB")):
        if number >= unit:
            return f"{number / unit:,.{0 if number >= 10 * unit else 1}f} {name}"
    return f"{max(number / 1024, 1):,.0f} kB" if number else "–"


def share(part: float | None) -> str:
    """Return a share as `98 %`; a dash for None."""
    return "–" if part is None else f"{100 * part:.0f} %"


def count(number: int, noun: str, limit: int | None = None) -> str:
    """Return `1 job` or `1,200 jobs`; `1,000+ jobs` if the number has reached `limit`."""
    shown = f"{number:,}" if limit is None else capped(number, limit)
    return f"{shown} {noun}" if number == 1 else f"{shown} {noun}s"


def capped(count: int, limit: int = 10_000) -> str:
    """Return a count that was capped at `limit`, with a plus if it has reached the limit."""
    return f"{count:,}+" if count >= limit else f"{count:,}"


STATE_LABELS = {state.value: state.value for state in State} | {State.PENDING.value: "queued"}


class HasState(Protocol):
    """A job, or some of its fields."""

    state: str
    due_at: datetime
    attempt: int


def state_label(job: HasState) -> str:
    """Return `queued`, `scheduled` or `retry scheduled` for a pending job, else its state."""
    if job.state == State.PENDING and job.due_at > clock.now():
        return "retry scheduled" if job.attempt else "scheduled"
    return STATE_LABELS.get(job.state, job.state)
