"""Why a job that is not pending is in its state, and what happens next."""

import re

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs import registry
from tailrace.jobs.inspection.explain.reasons import Reason
from tailrace.jobs.inspection.formatting import when
from tailrace.jobs.inspection.state_labels import state_label
from tailrace.jobs.maintenance.rescue import LOST
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.states import DONE, LIVE, State

_MERGED = re.compile(r"merged into job (\d+)")
"""The error of a merged job, as insert and settle write it."""


def reasons(job: Job) -> list[Reason]:
    """Return the reasons of a waiting, running or finished job."""
    match job.state:
        case State.WAITING:
            return [_waiting(job)]
        case State.RUNNING:
            return _running(job)
        case State.FAILED:
            return [_failed(job), _replay(job)]
        case State.CANCELLED:
            return [_cancelled(job), _replay(job)]
        case State.SKIPPED:
            return [_skipped(job)]
        case State.COMPLETED:
            attempt = "the first attempt" if job.attempt <= 1 else f"attempt {job.attempt}"
            return [Reason("completed", f"It was completed at {attempt}, by {job.worker}.")]
    words = f"{job.state!r} is not a state of a job; run `manage.py fsck`."
    return [Reason("unknown_state", words)]


def _waiting(job: Job) -> Reason:
    if job.after_id is None:
        words = "It is waiting, but the job that it waits for is not set: run `manage.py fsck`."
        return Reason("waits_for_nothing", words)
    parent = (
        Job.objects.filter(pk=job.after_id)
        .only("id", "handler", "state", "attempt", "due_at")
        .first()
    )
    if parent is None:
        words = f"It waits for job {job.after_id}, which was deleted: the sweeper cancels it."
        return Reason("parent_gone", words, (job.after_id,))
    words = f"It waits for job {parent.pk} ({parent.handler}), which is {state_label(parent)}"
    if parent.state in LIVE:
        return Reason("waits", f"{words}.", (parent.pk,))
    then = "queues it" if parent.state in DONE else "cancels it"
    return Reason("parent_finished", f"{words}: the sweeper {then} within seconds.", (parent.pk,))


# --- running --------------------------------------------------------------------------------------

_EXPIRED = f"SELECT lease_until < {clock.NOW} FROM tailrace_jobs_job WHERE id = %(id)s"


def _running(job: Job) -> list[Reason]:
    handler = registry.find(job.handler)
    of = f" of {handler.max_attempts}" if handler else ""
    words = (
        f"It has been running on {job.worker or 'an unknown worker'} since {when(job.started_at)}: "
        f"attempt {job.attempt}{of}, claim {job.claim_no}."
    )
    if not job.begun:
        words = (
            f"It was claimed by {job.worker or 'an unknown worker'} {when(job.started_at)} and is "
            "about to begin: other jobs of its claim are called before it, or its call began "
            "within the last second."
        )
    reasons = [Reason("running" if job.begun else "claimed", words)]
    if job.progress_done is not None:
        total = "" if job.progress_total is None else f" of {job.progress_total}"
        note = f" ({job.progress_note})" if job.progress_note else ""
        reasons.append(Reason("progress", f"Its progress is {job.progress_done}{total}{note}."))
    reasons.append(_lease(job))
    if job.cancel_requested:
        words = (
            "A stop was requested. It stops when its handler calls `check_cancelled()`, or before "
            "its next attempt."
        )
        reasons.append(Reason("cancel_requested", words))
    return reasons


def _lease(job: Job) -> Reason:
    if job.lease_until is None:
        words = "It has no lease, so it would never be rescued: run `manage.py fsck --fix`."
        return Reason("no_lease", words)
    rows = query(_EXPIRED, id=job.pk)
    if not (rows and rows[0][0]):
        words = f"Its lease ends {when(job.lease_until)}; the worker renews it."
        return Reason("lease", words)
    words = f"Its lease ended {when(job.lease_until)}: its worker does not respond."
    return Reason("lease_expired", f"{words} {_after_rescue(job)}")


def _after_rescue(job: Job) -> str:
    handler = registry.find(job.handler)
    if handler is None:
        return "This code has no handler of its name: after an hour the tick queues it again."
    if job.cancel_requested:
        return "The tick cancels it, as requested."
    if not job.begun:
        return "The tick queues it again, to be claimed alone; it is charged no attempt."
    if job.attempt >= handler.max_attempts:
        return f"The tick moves it to failed: its {handler.max_attempts} attempts are used up."
    return "The tick queues it again, to be claimed alone."


def merges(job: Job) -> list[Reason]:
    """Return how many jobs were merged into this one, as a reason to add to the others."""
    if not job.merged:
        return []
    one = job.merged == 1
    words = f"{job.merged:,} {'job' if one else 'jobs'} with its unique key"
    return [Reason("merges", f"{words} {'was' if one else 'were'} merged into it.")]


# --- finished -------------------------------------------------------------------------------------


def _failed(job: Job) -> Reason:
    failed = f"It failed {when(job.finished_at)}"
    error = job.error.strip().rstrip(".") or "no reason given"
    if not job.claim_no:
        return Reason("failed_untried", f"{failed} before its first attempt: {error}.")
    if job.error.startswith("no handler is called "):
        return Reason("unknown_handler", f"{failed}: {error}.")
    last = Attempt.objects.filter(job=job.pk, claim_no=job.claim_no).only("outcome").first()
    handler = registry.find(job.handler)
    if job.error == LOST or (last is not None and last.outcome == Attempt.Outcome.LOST):
        return Reason("workers_lost", f"{failed}: {error}, at its last attempt ({job.attempt}).")
    if handler is not None and job.attempt < handler.max_attempts:
        words = (
            f"{failed} permanently, at attempt {job.attempt} of {handler.max_attempts}: {error}. "
            "Its handler decided that a retry would not help."
        )
        return Reason("permanent", words)
    words = f"{failed}: all {job.attempt} attempts are used up. The last error: {error}."
    return Reason("attempts_used_up", words)


def _skipped(job: Job) -> Reason:
    if match := _MERGED.fullmatch(job.error):
        other = int(match[1])
        words = (
            f"It was merged into job {other}, which had the same unique key and had not begun: "
            "that job does the work of both."
        )
        return Reason("merged", words, (other,))
    why = job.error or "no reason given"
    return Reason("skipped", f"It was skipped by its handler: {why}.")


def _cancelled(job: Job) -> Reason:
    why = job.error or "no reason given"
    why = why if why.startswith("cancelled") else f"cancelled: {why}"
    return Reason("cancelled", f"It was {why}.")


def _replay(job: Job) -> Reason:
    words = (
        f"`manage.py jobs replay {job.pk}`, or Replay in the admin, queues it again with all "
        "its attempts."
    )
    return Reason("replay", words)
