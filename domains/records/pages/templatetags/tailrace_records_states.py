"""Template filters for depositions and sources. Their states use the styles of job states."""

import json
from typing import Any

from django import template

from tailrace.domains.records.models import Deposition, Source
from tailrace.domains.records.sources.formats import formats
from tailrace.domains.records.sources.upkeep.status import COUNTED
from tailrace.net.url_secrets import shown_url

State = Deposition.State
register = template.Library()
MAX_CURSOR = 500
_STYLES = {
    State.SUBMITTED: "pending",
    State.VALID: "waiting",
    State.APPROVED: "running",
    State.PUBLISHED: "completed",
    State.INVALID: "failed",
    State.REJECTED: "failed",
    State.SUPERSEDED: "skipped",
}


@register.filter
def deposition_style(state: str) -> str:
    """Return the job state whose style this state of a deposition uses."""
    return _STYLES.get(State(state), "pending")


_SOURCE_STYLES = {"error": "failed", "reading": "running", "up to date": "completed"}


@register.filter
def source_style(source: Source) -> str:
    """Return the job state whose style this source uses."""
    return _SOURCE_STYLES.get(source.state, "pending") if source.is_active else "skipped"


@register.filter
def source_format(kind: str) -> str:
    return formats()[kind].label if kind in formats() else kind


register.filter(shown_url)


@register.filter
def counted(number: int) -> str:
    """Return the number as text, with a plus sign if it has reached the maximum COUNTED."""
    return f"{number:,}+" if number >= COUNTED else str(number)


@register.filter
def cursor_text(cursor: Any) -> str:
    """Return the cursor as JSON, without the token trail and cut to MAX_CURSOR characters."""
    if not cursor:
        return "at the beginning"
    text = json.dumps({name: value for name, value in cursor.items() if value and name != "trail"})
    return text if len(text) <= MAX_CURSOR else f"{text[:MAX_CURSOR]}…"
