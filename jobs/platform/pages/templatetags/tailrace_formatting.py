"""Template filters for durations, times, sizes and counts, and links to the admin."""

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from tailrace.jobs.platform.inspection.display.formatting import (
    ago,
    capped,
    duration,
    memory,
    share,
    size,
    state_label,
    time_ago,
    timestamp,
    when,
)
from tailrace.jobs.platform.pages.admin_links import admin_address

register = template.Library()
register.filter("ago", ago)
register.filter("capped", capped)
register.filter("duration", duration)
register.filter("memory", memory)
register.filter("share", share)
register.filter("size", size)
register.filter("time_ago", time_ago)
register.filter("timestamp", timestamp)
register.filter("when", when)
register.filter("state_label", state_label)
register.simple_tag(admin_address)


@register.filter
def took(run: object) -> str:
    """Return the duration of a job or an attempt, from its start to its end."""
    started, finished = getattr(run, "started_at", None), getattr(run, "finished_at", None)
    if started is None or finished is None:
        return "–"
    return duration(max((finished - started).total_seconds(), 0.0))


@register.filter
def breakable(name: str) -> SafeString:
    """Return a name that may be broken after its dots and underscores, as HTML."""
    return mark_safe(re.sub(r"([._])", r"\1<wbr>", escape(name)))  # noqa: S308  (escaped)


@register.filter
def thousands(number: int) -> str:
    return f"{number:,}"
