"""Explain why a job runs or does not run now, and how its time was spent, by bounded reads."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User

from tailrace.jobs.engine import registry
from tailrace.jobs.handler import NO_LANE
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.inspection.display.formatting import state_label
from tailrace.jobs.platform.inspection.explain import state_reasons, time_spent, workers
from tailrace.jobs.platform.inspection.explain.limits import concurrency_reasons, hang_reasons
from tailrace.jobs.platform.inspection.explain.next_claim import (
    Claimable,
    ClaimStatus,
    claim_status,
)
from tailrace.jobs.platform.inspection.explain.reasons import Reason, job_count
from tailrace.jobs.platform.inspection.explain.time_spent import Span
from tailrace.jobs.platform.inspection.visibility import HIDDEN, mask_jobs
from tailrace.jobs.runtime.states import LIVE, State

MAX_READS = 3
"""How often a job is read that changes while it is read."""
MAX_PARENTS = 3
"""Parents of a waiting job whose own state is explained, too."""
NO_CLAIMS = ("no_worker", "pool_full", "broker_away")
"""Codes of the reasons for which no worker claims any job."""


class JobNotFound(LookupError):
    """There is no job with this id."""


@dataclass(slots=True)
class Explanation:
    """Why a job is in its state, and when it will run."""

    job: int
    handler: str
    state: str
    summary: str
    """One sentence."""
    label: str = ""
    """The state as people see it: `queued`, `scheduled` or `retry scheduled` for pending."""
    ready: str | None = None
    """For a pending job: whether it can be claimed: yes, no, or turn (it depends on the lane that
    the claiming worker served last)."""
    next_claim: str | None = None
    """For a pending job: whether the next claim of its queue takes it: yes, no or turn."""
    before: int | None = None
    """For a due pending job: how many jobs are claimed before it, up to MAX_COUNTED."""
    reasons: list[Reason] = field(default_factory=list)
    serving: list[Reason] = field(default_factory=list)
    """Reasons why workers claim no job of the queue."""
    spans: list[Span] = field(default_factory=list)
    not_recorded: str = time_spent.NOT_RECORDED

    @property
    def details(self) -> list[Reason]:
        """The reasons that are not in the summary."""
        reasons = [*self.reasons, *self.serving]
        return [reason for reason in reasons if reason.words not in self.summary]

    @property
    def other_jobs(self) -> list[int]:
        """The ids of the other jobs in its reasons."""
        return sorted({id for reason in self.reasons for id in reason.jobs})

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values: times in ISO 8601, durations in seconds."""
        return asdict(self) | {"spans": [span.as_json() for span in self.spans]}


def explain(id: int, viewer: User | None = None) -> Explanation:
    """Return the explanation of the job with this id; raises JobNotFound.

    Errors and lane names are masked if the viewer may not see them; nothing is masked if `viewer`
    is None (an operator with a shell). For a pending job the broker is queried, too, for at most
    two seconds.
    """
    for read in range(MAX_READS):
        job = Job.objects.filter(pk=id).defer("payload", "result").first()
        if job is None:
            raise JobNotFound(f"there is no job {id}")
        hidden = viewer is not None and _mask(job, viewer)
        explanation = _pending(job) if job.state == State.PENDING else _not_pending(job)
        if job.state == State.WAITING:
            explanation.reasons += _why_parents_have_not_ended(explanation.other_jobs, viewer)
        explanation.spans = list(time_spent.spans(job, viewer, hidden))
        explanation.label = state_label(job)
        if hidden:
            _mask_words(explanation, {job.lane, job.routing_key} - {"", NO_LANE})
        if read + 1 == MAX_READS or _unchanged(job):
            break
    return explanation


def _mask(job: Job, viewer: User) -> bool:
    """Mask the job's texts, but not its lane and routing key, which statements need; return
    whether the job is hidden from the viewer."""
    lane, routing_key = job.lane, job.routing_key
    hidden = bool(mask_jobs(viewer, [job]))
    job.lane, job.routing_key = lane, routing_key
    return hidden


def _mask_words(explanation: Explanation, names: set[str]) -> None:
    def masked(words: str) -> str:
        for name in sorted(names, key=len, reverse=True):
            words = words.replace(name, HIDDEN)
        return words

    explanation.summary = masked(explanation.summary)
    for reasons in (explanation.reasons, explanation.serving):
        reasons[:] = [replace(reason, words=masked(reason.words)) for reason in reasons]


def _unchanged(job: Job) -> bool:
    jobs = Job.objects.filter(pk=job.pk, state=job.state, claim_no=job.claim_no, due_at=job.due_at)
    return jobs.exists()


def _not_pending(job: Job) -> Explanation:
    reasons = state_reasons.reasons(job)
    reasons += [*state_reasons.suspects(job), *state_reasons.merges(job)]
    return Explanation(job.pk, job.handler, job.state, reasons[0].words, reasons=reasons)


def _why_parents_have_not_ended(ids: Sequence[int], viewer: User | None) -> list[Reason]:
    """Return one reason for each of the first parents, without parents that the viewer may not
    see. The broker is not queried."""
    reasons = []
    for parent in Job.objects.filter(pk__in=ids[:MAX_PARENTS]).order_by("pk"):
        if parent.state not in LIVE or (viewer is not None and mask_jobs(viewer, [parent])):
            continue
        if parent.state == State.PENDING:
            queue = Queue.objects.filter(pk=parent.handler).first()
            words = _summary(parent, claim_status(parent, queue), [])
        else:
            words = _not_pending(parent).summary
        reasons.append(Reason("parent", f"Job {parent.pk}: {words}", (parent.pk,)))
    return reasons


def _pending(job: Job) -> Explanation:
    queue = Queue.objects.filter(pk=job.handler).first()
    status = claim_status(job, queue)
    serving: list[Reason] = []
    if queue is not None:
        serving = workers.reasons(queue, status.ready is not Claimable.NO)
    if status.ready is not Claimable.NO:
        serving += concurrency_reasons(job)
    hanging = hang_reasons(job)
    return Explanation(
        job=job.pk,
        handler=job.handler,
        state=job.state,
        summary=" ".join([_summary(job, status, serving), *(each.words for each in hanging)]),
        ready=status.ready.value,
        next_claim=status.next_claim.value,
        before=status.before,
        reasons=[
            *status.reasons,
            *hanging,
            *state_reasons.suspects(job),
            *state_reasons.merges(job),
        ],
        serving=serving,
    )


def _summary(job: Job, status: ClaimStatus, serving: list[Reason]) -> str:
    if status.ready is Claimable.NO:
        return f"Not now: {status.reasons[0].words}"
    handler = registry.get(job.handler)
    lane = " of its lane" if handler.in_lanes() else ""
    verb = "comes" if status.before <= 1 else "come"
    before = f"{job_count(status.before)}{lane} {verb} before it"
    text = f"Ready, but not in the next claim: {before}."
    if status.next_claim is Claimable.YES:
        claim = "the next claim" if handler.in_batches() else "one of the next claims"
        text = f"Ready: {claim} takes it; {before}."
    elif status.next_claim is Claimable.DEPENDS_ON_LANE:
        text = f"Ready: whether the next claim takes it depends on which lane is next; {before}."
    elif isolated := [reason for reason in status.reasons if reason.code == "isolated"]:
        text = f"Ready, but another job goes first. {isolated[0].words}"
    for reason in serving:
        if reason.code in NO_CLAIMS:
            return f"{text} But no worker claims it now: {reason.words}"
    return text
