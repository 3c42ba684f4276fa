"""Labels for the states of jobs, for pages and commands."""

from tailrace.db import clock
from tailrace.jobs.models import Job
from tailrace.jobs.models.states import State

STATE_LABELS = {state.value: state.value for state in State} | {State.PENDING.value: "queued"}


def state_label(job: Job) -> str:
    """Return `queued`, `scheduled` or `retry scheduled` for a pending job, else its state."""
    if job.state == State.PENDING and job.due_at > clock.now():
        return "retry scheduled" if job.attempt else "scheduled"
    return STATE_LABELS.get(job.state, job.state)
