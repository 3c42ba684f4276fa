"""How the states of depositions and sources look: like those of jobs."""

import json
from typing import Any

from django import template

from tailrace.domains.records.models import Deposition, Source
from tailrace.domains.records.source_upkeep.status import COUNTED
from tailrace.domains.records.sources import fetch
from tailrace.domains.records.sources.formats import formats

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
    """Return the state of a job with the same look."""
    return _STYLES.get(State(state), "pending")


_SOURCE_STYLES = {"error": "failed", "reading": "running", "up to date": "completed"}


@register.filter
def source_style(source: Source) -> str:
    """Return the state of a job with the look of this source's."""
    return _SOURCE_STYLES.get(source.state, "pending") if source.is_active else "skipped"


@register.filter
def source_format(kind: str) -> str:
    """Return the label of a format of sources."""
    return formats()[kind].label if kind in formats() else kind


@register.filter
def origin(url: str) -> str:
    """Return scheme, host and port: what follows may have a secret in it."""
    return fetch.origin(url)


@register.filter
def counted(number: int) -> str:
    """Return a number of depositions, of which COUNTED are counted at most."""
    return f"{number:,}+" if number >= COUNTED else str(number)


@register.filter
def cursor_text(cursor: Any) -> str:
    """Return where the next page begins, as JSON."""
    if not cursor:
        return "at the beginning"
    text = json.dumps({name: value for name, value in cursor.items() if value and name != "trail"})
    return text if len(text) <= MAX_CURSOR else f"{text[:MAX_CURSOR]}…"
