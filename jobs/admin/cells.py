"""cells: how single values are shown in lists and pages."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from jobs import registry
from jobs.models import Job

LABELS = {
    "waiting": "default",
    "pending": "info",
    "running": "primary",
    "completed": "success",
    "skipped": "default",
    "cancelled": "warning",
    "failed": "danger",
}
"""Unfold's label colours of the states of a job."""


def link(view: str, text: Any, *args: Any) -> SafeString:
    """Return a link to the admin's `view`, e.g. `jobs_job_change`."""
    return format_html(
        '<a class="tr-link" href="{}">{}</a>', reverse(f"admin:{view}", args=args), text
    )


def pretty(value: Any) -> SafeString:
    """Return a JSON value as a block of text; a dash for none."""
    if value is None:
        return SafeString("–")
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return format_html('<pre class="tr-pre">{}</pre>', text)


def attempts(job: Job) -> str:
    """Return `2/4`: attempts begun, of how many."""
    handler = registry.find(job.handler)
    return f"{job.attempt}/{handler.max_attempts if handler else '?'}"


def at(time: datetime | None) -> str:
    """Return a time as `2026-11-21 03:57:13`, in UTC."""
    return "–" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def time_of(field: str, title: str = "") -> Callable[[Any, Any], str]:
    """Return a column, for the body of a ModelAdmin, that shows the time in `field`."""

    @display(description=title or field.removesuffix("_at").replace("_", " "))
    def column(admin: Any, row: Any) -> str:
        return at(getattr(row, field))

    return column


def cut(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def joined(parts: list[Any]) -> SafeString:
    return format_html_join(", ", "{}", ((part,) for part in parts))


def names(fieldsets: Any) -> list[str]:
    """Return the names of all fields of these fieldsets."""
    rows = [row for _title, options in fieldsets for row in options["fields"]]
    return [name for row in rows for name in (row if isinstance(row, tuple) else (row,))]
