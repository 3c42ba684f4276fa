"""explain: why a job runs or does not run now, in words, and where its time went.

It only reads, a bounded number of rows. Of a pending job it asks what the claim itself asks.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jobs import explain_claim, explain_serving, explain_spent, explain_states, registry
from jobs.explain_claim import Answer, Standing
from jobs.explain_spent import Span
from jobs.explain_words import Reason
from jobs.models import Job, Queue
from jobs.states import State

LOOKS = 3
"""A job that moves while it is read is read again, so often at most."""


class UnknownJob(LookupError):
    """There is no job of this id."""


@dataclass(slots=True)
class Explanation:
    """Why a job stands where it stands."""

    job: int
    handler: str
    state: str
    summary: str
    """One sentence."""
    ready: str | None = None
    """Of a pending job: yes, no, or turn (by the lane that a worker served last)."""
    next_claim: str | None = None
    """Of a pending job: whether the next claim of its queue takes it; yes, no or turn."""
    before: int | None = None
    """Of a pending job that is due: the jobs that are claimed before it, BOUND at most."""
    reasons: list[Reason] = field(default_factory=list)
    serving: list[Reason] = field(default_factory=list)
    """What keeps workers from claiming it, whatever the claim would say."""
    spans: list[Span] = field(default_factory=list)

    @property
    def others(self) -> list[Reason]:
        """The reasons that the summary does not say already."""
        every = [*self.reasons, *self.serving]
        return [reason for reason in every if reason.words not in self.summary]

    @property
    def named(self) -> list[int]:
        """The ids of the other jobs that its reasons name."""
        return sorted({id for reason in self.reasons for id in reason.jobs})

    @property
    def unrecorded(self) -> str:
        return explain_spent.UNRECORDED

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values; times in ISO 8601, spans in seconds."""
        return {
            "job": self.job,
            "handler": self.handler,
            "state": self.state,
            "summary": self.summary,
            "ready": self.ready,
            "next_claim": self.next_claim,
            "before": self.before,
            "reasons": [_reason(reason) for reason in self.reasons],
            "serving": [_reason(reason) for reason in self.serving],
            "spans": [
                {
                    "what": span.what,
                    "begun": _iso(span.begun),
                    "ended": _iso(span.ended),
                    "seconds": round(span.seconds, 6),
                    "why": span.why,
                }
                for span in self.spans
            ],
            "not_recorded": self.unrecorded,
        }


def explain(id: int) -> Explanation:
    """Explain the job of this id; UnknownJob if there is none.

    For a pending job the broker is asked, too, for two seconds at most.
    """
    for look in range(LOOKS):
        job = Job.objects.filter(pk=id).defer("payload", "result").first()
        if job is None:
            raise UnknownJob(f"there is no job {id}")
        found = _pending(job) if job.state == State.PENDING else _other(job)
        found.spans = explain_spent.spans(job)
        if look + 1 == LOOKS or _as_it_was(job):
            break
    return found


def _as_it_was(job: Job) -> bool:
    same = Job.objects.filter(pk=job.pk, state=job.state, claim_no=job.claim_no, due_at=job.due_at)
    return same.exists()


def _other(job: Job) -> Explanation:
    reasons = explain_states.reasons(job)
    return Explanation(job.pk, job.handler, job.state, reasons[0].words, reasons=reasons)


def _pending(job: Job) -> Explanation:
    queue = Queue.objects.filter(pk=job.handler).first()
    found = explain_claim.standing(job, queue)
    serving: list[Reason] = []
    if queue is not None:
        serving = explain_serving.reasons(queue, found.ready is not Answer.NO)
    return Explanation(
        job=job.pk,
        handler=job.handler,
        state=job.state,
        summary=_summary(job, found, serving),
        ready=found.ready.value,
        next_claim=found.next_claim.value,
        before=found.before,
        reasons=found.reasons,
        serving=serving,
    )


HINDRANCES = ("no_worker", "broker_away")


def _summary(job: Job, found: Standing, serving: list[Reason]) -> str:
    if found.ready is Answer.NO:
        return f"Not now: {found.reasons[0].words}"
    handler = registry.get(job.handler)
    before = explain_claim.before_words(found, handler)
    text = f"Ready, but the next claim does not reach it: {before}."
    if found.next_claim is Answer.YES:
        text = f"Ready: the next claim takes it; {before}."
    elif found.next_claim is Answer.TURN:
        text = (
            f"Ready: whether the next claim takes it depends on whose lane has its turn; {before}."
        )
    elif isolated := [reason for reason in found.reasons if reason.code == "isolated"]:
        text = f"Ready, but another goes first. {isolated[0].words}"
    for reason in serving:
        if reason.code in HINDRANCES:
            return f"{text} But nobody comes to claim it: {reason.words}"
    return text


def _reason(reason: Reason) -> dict[str, Any]:
    return {"code": reason.code, "words": reason.words, "jobs": list(reason.jobs)}


def _iso(at: datetime) -> str:
    return at.isoformat()
