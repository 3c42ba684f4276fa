"""words: times and numbers as people read them, for templates."""

from datetime import datetime

from django import template

from events import clock

register = template.Library()

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


@register.filter
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


@register.filter
def ago(at: datetime | None) -> str:
    """Return how long ago a time is: `12 s ago`, or `in 3 min` for a time to come."""
    if at is None:
        return "–"
    seconds = (clock.now() - at).total_seconds()
    if seconds < -1:
        return f"in {duration(-seconds)}"
    return "now" if seconds < 1 else f"{duration(seconds)} ago"


@register.filter
def took(thing: object) -> str:
    """Return how long a job or an attempt ran: the time from its start to its end."""
    started, finished = getattr(thing, "started_at", None), getattr(thing, "finished_at", None)
    if started is None or finished is None:
        return "–"
    return duration(max((finished - started).total_seconds(), 0.0))


@register.filter
def capped(number: int, cap: int = 10_000) -> str:
    """Return a count that stops at `cap`, with a plus when it has."""
    return f"{number:,}+" if number >= cap else f"{number:,}"


@register.filter
def thousands(number: int) -> str:
    return f"{number:,}"
