"""How the states of depositions look: like those of jobs."""

from django import template

from domains.records.models import Deposition

State = Deposition.State
register = template.Library()
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
