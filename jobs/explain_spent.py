"""Where a job's time went: from publish over its claims to its end, as far as rows tell."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from events.models import Event
from jobs.models import Attempt, Job
from jobs.states import FINISHED, State

MOST_ATTEMPTS = 100
BACKFILL_SECONDS = 60
"""Fan-out makes a job in its event's transaction; backfill leaves events alone for so long."""
UNRECORDED = (
    "Not recorded: when the wake-up reached a worker (that is within the wait in line), when the "
    "handler began within its batch (a claim lasts until it is settled), and, before the last "
    "try, how much of a wait was backoff."
)

_PAUSES = {
    Attempt.Outcome.RETRIED: "backoff",
    Attempt.Outcome.SNOOZED: "snooze",
    Attempt.Outcome.FAILED: "failed, until it was replayed",
    Attempt.Outcome.LOST: "",
}
"""What a job waits for after a claim that ended so, before it is in line again."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a job's life."""

    what: str
    begun: datetime
    ended: datetime
    why: str = ""

    @property
    def seconds(self) -> float:
        return max((self.ended - self.begun).total_seconds(), 0.0)


def spans(job: Job) -> list[Span]:
    """Return the parts of a job's life in order, up to the last moment that is recorded."""
    return list(_spans(job))


def _spans(job: Job) -> Iterator[Span]:
    at = job.created_at
    recorded_at = _recorded_at(job)
    if recorded_at is not None:
        late = (at - recorded_at).total_seconds() > BACKFILL_SECONDS
        yield Span("publish → job", recorded_at, at, "made later, by backfill" if late else "")
    pause = "not due yet" if job.after_id is None else f"for job {job.after_id}, or not due yet"
    tries = _tries(job)
    for attempt in tries:
        last = attempt is tries[-1] and attempt.claim_no == job.claim_no
        started = attempt.started_at or at
        yield from _wait(at, started, job.due_at if last else None, pause)
        why = ": ".join(part for part in (attempt.outcome, attempt.message) if part)
        yield Span(f"claim {attempt.claim_no} → end", started, attempt.finished_at, why)
        at, pause = attempt.finished_at, _PAUSES.get(Attempt.Outcome(attempt.outcome), "")
    untold = not tries or tries[-1].claim_no < job.claim_no
    if untold and job.started_at is not None and job.state in (State.RUNNING, *FINISHED):
        yield from _wait(at, job.started_at, job.due_at, pause)
        if job.finished_at is not None:
            yield Span(f"claim {job.claim_no} → settle", job.started_at, job.finished_at, job.state)
    elif job.finished_at is not None and job.finished_at > at:
        yield Span("→ end", at, job.finished_at, f"unstarted, until it was {job.state}")


def _recorded_at(job: Job) -> datetime | None:
    if job.event_id is None:
        return None
    return Event.objects.filter(pk=job.event_id).values_list("recorded_at", flat=True).first()


def _tries(job: Job) -> list[Attempt]:
    rows = Attempt.objects.filter(job=job.pk).order_by("-claim_no").defer("traceback")
    return list(rows[:MOST_ATTEMPTS])[::-1]


def _wait(
    since: datetime, claimed: datetime, due_at: datetime | None, pause: str
) -> Iterator[Span]:
    """Split the wait before a claim at the time when it was due, if that is on the row."""
    if due_at is None or due_at > claimed:
        yield Span("→ claim", since, claimed, f"{pause}, then in line" if pause else "in line")
    elif due_at <= since:
        yield Span("due → claim", since, claimed, "in line")
    else:
        yield Span("→ due", since, due_at, pause)
        yield Span("due → claim", due_at, claimed, "in line")
