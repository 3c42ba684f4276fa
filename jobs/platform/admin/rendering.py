"""Render single values for lists and pages of the admin."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from tailrace.jobs.engine import registry
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.display.formatting import (
    timestamp as timestamp,  # for domains, too
)

STATE_COLOURS = {
    "waiting": "default",
    "queued": "info",
    "scheduled": "info",
    "retry scheduled": "info",
    "running": "primary",
    "completed": "success",
    "skipped": "default",
    "cancelled": "warning",
    "failed": "danger",
}
"""Unfold's colours for the labels of job states."""


def link(view: str, text: Any, *args: Any) -> SafeString:
    """Return a link to the admin's `view`, e.g. `tailrace_jobs_job_change`."""
    return format_html(
        '<a class="tr-link" href="{}">{}</a>', reverse(f"admin:{view}", args=args), text
    )


def row_link(view: str, name: str, id: int | None) -> str:
    """Return a link to the page of a row, e.g. `event 4`; a dash for None."""
    return "–" if id is None else link(view, f"{name} {id}", id)


def json_block(value: Any) -> SafeString:
    """Return a JSON value as a preformatted block; a dash for None."""
    if value is None:
        return SafeString("–")
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return format_html('<pre class="tr-pre">{}</pre>', text)


def attempts(job: Job) -> str:
    """Return the started and the maximum attempts, e.g. `2/4`."""
    handler = registry.find(job.handler)
    return f"{job.attempt}/{handler.max_attempts if handler else '?'}"


def time_column(field: str, title: str = "") -> Callable[[Any, Any], str]:
    """Return a column, for the body of a ModelAdmin, that shows the time in `field`."""

    @display(description=title or field.removesuffix("_at").replace("_", " "))
    def column(admin: Any, row: Any) -> str:
        return timestamp(getattr(row, field))

    return column


def truncated(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def comma_separated(values: Iterable[Any]) -> SafeString:
    return format_html_join(", ", "{}", ((value,) for value in values))
