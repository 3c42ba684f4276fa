"""Render single values for lists and pages of the admin."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from tailrace.jobs.engine import registry
from tailrace.jobs.models import Job
from tailrace.jobs.platform.admin.theme import display
from tailrace.jobs.platform.inspection.display.formatting import time_ago
from tailrace.jobs.platform.inspection.display.formatting import (
    timestamp as timestamp,  # for domains, too
)

STATE_COLOURS = {
    "waiting": "warning",
    "queued": "info",
    "scheduled": "info",
    "retry scheduled": "info",
    "running": "primary",
    "completed": "success",
    "skipped": "default",
    "cancelled": "warning",
    "failed": "danger",
}
"""Unfold's colours for the labels of job states: the colours of the badges in state_badges.css."""


MOST_LINES = 40
"""JSON values with more lines are folded."""


def link(view: str, text: Any, *args: Any, query: str = "") -> SafeString:
    """Return a link to the admin's `view`, e.g. `tailrace_jobs_job_change`."""
    address = reverse(f"admin:{view}", args=args) + query
    return format_html('<a class="tr-link" href="{}">{}</a>', address, text)


def row_link(view: str, name: str, id: int | None) -> str:
    """Return a link to the page of a row, e.g. `event 4`; a dash for None."""
    return "–" if id is None else link(view, f"{name} {id}", id)


def event_link(id: int | None) -> str:
    return row_link("tailrace_events_event_change", "event", id)


def job_link(id: int | None) -> str:
    return row_link("tailrace_jobs_job_change", "job", id)


def flow_link(job: Job) -> str:
    """Return a link to the flow of a job, with the name of the job in it."""
    if job.flow_id is None:
        return "–"
    flow = row_link("tailrace_jobs_flow_change", "flow", job.flow_id)
    return format_html("{}, as {}", flow, job.flow_name)


def json_block(value: Any) -> SafeString:
    """Return a JSON value as a preformatted block, folded if it is long; a dash for None. A search
    of the browser opens a folded block."""
    if value is None:
        return SafeString("–")
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    block = format_html('<pre class="tr-pre">{}</pre>', text)
    if (lines := text.count("\n") + 1) <= MOST_LINES:
        return block
    return format_html(
        '<details class="tr-fold"><summary>{} lines</summary>{}</details>', f"{lines:,}", block
    )


def attempts(job: Job) -> str:
    """Return the started and the maximum attempts, e.g. `2/4`."""
    handler = registry.find(job.handler)
    return f"{job.attempt}/{handler.max_attempts if handler else '?'}"


def progress(job: Job) -> int | None:
    """Return the progress of a job in per cent; None if its handler does not report it."""
    if job.progress_done is None or not job.progress_total:
        return None
    return min(100 * job.progress_done // job.progress_total, 100)


def column(title: str, value: Callable[[Any], Any], **options: Any) -> Callable[[Any, Any], Any]:
    """Return a column or field, for the body of a ModelAdmin, with the value of each row.

    `options` are those of unfold's `display`: `label`, `ordering`, `empty_value`.
    """

    @display(description=title, **options)
    def show(admin: Any, row: Any) -> Any:
        return value(row)

    return show


def time_column(field: str, title: str = "", **options: Any) -> Callable[[Any, Any], Any]:
    """Return a column, for the body of a ModelAdmin, that shows the time in `field`."""
    title = title or field.removesuffix("_at").replace("_", " ")
    return column(title, lambda row: time_of(row, getattr(row, field)), **options)


def time_of(row: Any, at: datetime | None) -> str:
    """Return a time of a row: in lists, how long ago it was; on the row's page, the time itself."""
    return time_ago(at) if getattr(row, "is_listed", False) else timestamp(at)


def truncated(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def one_line(text: str) -> str:
    """Return a text for a cell that cuts it; all of it, up to 500 characters, on hover."""
    if not text:
        return ""
    return format_html('<span title="{}">{}</span>', truncated(text, 500), truncated(text))


def comma_separated(values: Iterable[Any]) -> SafeString:
    return format_html_join(", ", "{}", ((value,) for value in values))
