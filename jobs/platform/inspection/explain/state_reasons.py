"""Why a job that is not pending is in its state, and what happens next."""

import re

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.engine.maintenance.ticking.rescue import LOST
from tailrace.jobs.engine.waking.dependents import NOT_NEEDED
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.explain import waiting
from tailrace.jobs.platform.inspection.explain.reasons import MAX_COUNTED, Reason, job_count
from tailrace.jobs.runtime.states import State

_MERGED = re.compile(r"merged into job (\d+)")
"""Matches the error that insert and settle write to a merged job."""


def reasons(job: Job) -> list[Reason]:
    """Return the reasons of a waiting, running or finished job."""
    match job.state:
        case State.WAITING:
            return waiting.reasons(job)
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
            return [Reason("completed", f"The job completed at {attempt}, by {job.worker}.")]
    words = f"{job.state!r} is not a state of a job; run `manage.py fsck`."
    return [Reason("unknown_state", words)]


# --- running --------------------------------------------------------------------------------------

_EXPIRED = f"SELECT lease_until < {clock.NOW} FROM tailrace_jobs_job WHERE id = %(id)s"


def _running(job: Job) -> list[Reason]:
    handler = registry.find(job.handler)
    of = f" of {handler.max_attempts}" if handler else ""
    words = (
        f"The job has been running on {job.worker or 'an unknown worker'} since "
        f"{when(job.started_at)}: attempt {job.attempt}{of}, claim {job.claim_no}."
    )
    if not job.begun:
        words = (
            f"The job was claimed by {job.worker or 'an unknown worker'} {when(job.started_at)} "
            "and is about to start: other jobs of its claim run first, or its call started within "
            "the last second."
        )
    reasons = [Reason("running" if job.begun else "claimed", words)]
    if job.progress_done is not None:
        total = "" if job.progress_total is None else f" of {job.progress_total}"
        note = f" ({job.progress_note})" if job.progress_note else ""
        reasons.append(Reason("progress", f"Its progress is {job.progress_done}{total}{note}."))
    reasons.append(_lease(job))
    if job.cancel_requested:
        words = (
            "A stop was requested. The job stops when its handler calls `check_cancelled()`, or "
            "before its next attempt."
        )
        reasons.append(Reason("cancel_requested", words))
    return reasons


def _lease(job: Job) -> Reason:
    if job.lease_until is None:
        words = "The job has no lease, so it is never rescued: run `manage.py fsck --fix`."
        return Reason("no_lease", words)
    rows = query(_EXPIRED, id=job.pk)
    if not (rows and rows[0][0]):
        words = f"Its lease ends {when(job.lease_until)}; the worker renews the lease."
        return Reason("lease", words)
    words = f"Its lease ended {when(job.lease_until)}: its worker does not respond."
    return Reason("lease_expired", f"{words} {_after_rescue(job)}")


def _after_rescue(job: Job) -> str:
    handler = registry.find(job.handler)
    if handler is None:
        return "This code does not have its handler: after an hour the tick queues the job again."
    if job.cancel_requested:
        return "The tick cancels the job, as requested."
    if not job.begun:
        return "The tick queues the job again, to be claimed on its own; this counts as no attempt."
    if job.attempt >= handler.max_attempts:
        return f"The tick moves the job to failed: its {handler.max_attempts} attempts are used up."
    return "The tick queues the job again, to be claimed on its own."


def merges(job: Job) -> list[Reason]:
    """Return how many jobs were merged into this job, as a reason to add to its other reasons."""
    if not job.merged:
        return []
    jobs = "job with its unique key was" if job.merged == 1 else "jobs with its unique key were"
    return [Reason("merges", f"{job.merged:,} {jobs} merged into this job.")]


# Jobs of a suspect group keep their due times, so they are at the front of the queue again.
_OTHER_SUSPECTS = f"""
SELECT count(*) FROM (
  (SELECT id, suspect_group FROM tailrace_jobs_live WHERE handler = %(handler)s AND {sql.PENDING}
   ORDER BY priority, due_at, id LIMIT {MAX_COUNTED})
  UNION ALL
  (SELECT id, suspect_group FROM tailrace_jobs_live WHERE {sql.RUNNING} LIMIT {MAX_COUNTED})
) first
WHERE suspect_group = %(mark)s AND id <> %(id)s
"""


def suspects(job: Job) -> list[Reason]:
    """Return a reason if the job is called on its own or in a small group, else an empty list."""
    handler = registry.find(job.handler)
    if job.suspect_group is None or handler is None or not handler.in_batches():
        return []
    [(others,)] = query(_OTHER_SUSPECTS, handler=job.handler, mark=job.suspect_group, id=job.pk)
    calls = "was called" if job.state == State.RUNNING else "is called"
    group = f"together with {job_count(others)} of the batch" if others else "on its own"
    words = (
        "A batch with this job failed as a whole. To find the job that makes the batch fail, this "
        f"job {calls} {group}."
    )
    return [Reason("suspect", words)]


# --- finished -------------------------------------------------------------------------------------


def _failed(job: Job) -> Reason:
    failed = f"The job failed {when(job.finished_at)}"
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
            f"The job was merged into job {other}, which had the same unique key and had not "
            "started: that job does the work of both."
        )
        return Reason("merged", words, (other,))
    if job.error == NOT_NEEDED:
        words = (
            "The job runs only if another job fails: none of the jobs that it waited for failed."
        )
        return Reason("not_needed", words)
    return Reason("skipped", f"The handler skipped the job: {job.error or 'no reason given'}.")


def _cancelled(job: Job) -> Reason:
    reason = job.error or "no reason given"
    reason = reason if reason.startswith("cancelled") else f"cancelled: {reason}"
    return Reason("cancelled", f"The job was {reason}.")


def _replay(job: Job) -> Reason:
    words = f"`manage.py jobs replay {job.pk}`, or Replay in the admin, queues the job again with "
    return Reason("replay", f"{words}all its attempts.")
