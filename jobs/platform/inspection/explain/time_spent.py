"""How a job's time was spent: from publish through its claims to its end, as far as recorded."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from tailrace.events.models import Event
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.platform.inspection.visibility import mask_attempts
from tailrace.jobs.runtime.states import FINISHED, State

MAX_ATTEMPTS = 100
BACKFILL_SECONDS = 60
"""A job that was created this long after its event was created by backfill, not by fan-out."""
NOT_RECORDED = (
    "Not recorded: when the wake-up reached a worker (this is part of the time queued), and how "
    "much of the wait before an earlier attempt was backoff. All jobs of a batch share one call."
)

_PAUSES = {
    Attempt.Outcome.RETRIED: "backoff",
    Attempt.Outcome.SNOOZED: "snooze",
    Attempt.Outcome.FAILED: "failed, until it was replayed",
    Attempt.Outcome.LOST: "",
}
"""Why a job waits after a claim with this outcome, before it is queued again."""


@dataclass(frozen=True, slots=True)
class Span:
    what: str
    begun: datetime
    ended: datetime
    why: str = ""
    kind: str = "wait"
    """publish, wait (for its due time, another job or a backoff), queued, claim (until its call
    begins), run, or end."""

    @property
    def seconds(self) -> float:
        return max((self.ended - self.begun).total_seconds(), 0.0)

    def as_json(self) -> dict[str, Any]:
        times = {"begun": self.begun.isoformat(), "ended": self.ended.isoformat()}
        return asdict(self) | times | {"seconds": round(self.seconds, 6)}


def spans(job: Job, viewer: User | None = None, hidden: bool = False) -> Iterator[Span]:
    """Yield the spans of a job's time in order, up to the last recorded time."""
    at = job.created_at
    ids = [job.event_id] if job.event_id else []
    for recorded_at in Event.objects.filter(pk__in=ids).values_list("recorded_at", flat=True):
        late = (at - recorded_at).total_seconds() > BACKFILL_SECONDS
        why = "created later by backfill" if late else ""
        yield Span("publish → job", recorded_at, at, why, "publish")
    pause = f"waiting for job {job.after_id}, or not due yet" if job.after_id else "not due yet"
    newest = Attempt.objects.filter(job=job.pk).order_by("-claim_no").defer("traceback")
    attempts = list(newest[:MAX_ATTEMPTS])[::-1]
    if viewer is not None:
        mask_attempts(viewer, attempts, hidden)
    for attempt in attempts:
        last = attempt is attempts[-1] and attempt.claim_no == job.claim_no
        started = attempt.started_at or at
        yield from _wait(at, started, job.due_at if last else None, pause)
        why = ": ".join(part for part in (attempt.summary, attempt.message) if part)
        if attempt.times > 1:
            yield Span(f"{attempt.times} claims → end", started, attempt.finished_at, why, "run")
        else:
            yield from _claim(attempt, started, attempt.finished_at, why)
        at, pause = attempt.finished_at, _PAUSES.get(Attempt.Outcome(attempt.outcome), "")
    no_attempt = not attempts or attempts[-1].claim_no < job.claim_no
    if no_attempt and job.started_at is not None and job.state in (State.RUNNING, *FINISHED):
        yield from _wait(at, job.started_at, job.due_at, pause)
        if job.finished_at is not None:
            yield from _claim(job, job.started_at, job.finished_at, job.state)
        elif began := call_of(job):
            yield Span(f"claim {job.claim_no} → call", job.started_at, began, "", "claim")
    elif job.finished_at is not None and job.finished_at > at:
        why = f"not started until it was {job.state}"
        yield Span("wait → end", at, job.finished_at, why, "end")


def _claim(of: Job | Attempt, claimed: datetime, ended: datetime, why: str) -> Iterator[Span]:
    """Yield the spans of a claim: before, during and after its call, as far as recorded."""
    began, end = call_of(of), "settle" if isinstance(of, Job) else "end"
    if began is None:
        yield Span(f"claim {of.claim_no} → {end}", claimed, ended, why, "run")
        return
    began = min(began, ended)
    yield Span(f"claim {of.claim_no} → call", claimed, began, "", "claim")
    if of.call_took is None:
        yield Span(f"call → {end}", began, ended, why, "run")
        return
    returned = min(began + timedelta(seconds=of.call_took), ended)
    yield Span("call → end", began, returned, why, "run")
    yield Span("end → settle", returned, ended, "", "end")


def call_of(of: Job | Attempt) -> datetime | None:
    """Return when the call of the job's last claim, or of this attempt, began; None if it is not
    recorded."""
    if of.started_at is None or of.call_after is None:
        return None
    return of.started_at + timedelta(seconds=of.call_after)


def _wait(
    since: datetime, claimed: datetime, due_at: datetime | None, pause: str
) -> Iterator[Span]:
    """Yield the spans of the wait before a claim: until the job was due, if recorded, and after."""
    if due_at is None or due_at > claimed:
        why, kind = (f"{pause}, then queued", "wait") if pause else ("queued", "queued")
        yield Span("wait → claim", since, claimed, why, kind)
    elif due_at <= since:
        yield Span("due → claim", since, claimed, "queued", "queued")
    else:
        yield Span("wait → due", since, due_at, pause)
        yield Span("due → claim", due_at, claimed, "queued", "queued")
