"""Why a job that is not pending stands where it stands, and what happens to it next."""

from django.db import connection

from events import clock
from jobs import registry
from jobs.explain_words import Reason, when
from jobs.models import Attempt, Job
from jobs.rescue import LOST
from jobs.states import DONE, LIVE, State


def reasons(job: Job) -> list[Reason]:
    """Return what there is to say of a waiting, running or finished job."""
    match job.state:
        case State.WAITING:
            return [_waits(job)]
        case State.RUNNING:
            return _runs(job)
        case State.FAILED:
            return [_failed(job), _replay(job)]
        case State.CANCELLED:
            return [Reason("cancelled", f"It was {_why(job, 'cancelled')}."), _replay(job)]
        case State.SKIPPED:
            why = f": {job.error}" if job.error else ", without a reason"
            return [Reason("skipped", f"Its handler had nothing to do{why}.")]
        case State.COMPLETED:
            tries = "at the first attempt" if job.attempt <= 1 else f"at attempt {job.attempt}"
            return [Reason("completed", f"It was completed {tries}, by {job.worker}.")]
    return [Reason("unknown_state", f"{job.state!r} is no state of a job; run `manage.py fsck`.")]


# --- waiting --------------------------------------------------------------------------------------


def _waits(job: Job) -> Reason:
    if job.after_id is None:
        words = "It waits, but names no job to wait for: run `manage.py fsck --fix`."
        return Reason("waits_for_nothing", words)
    parent = Job.objects.filter(pk=job.after_id).only("id", "handler", "state").first()
    if parent is None:
        words = f"The job {job.after_id} that it waits for is gone: the sweeper cancels it."
        return Reason("parent_gone", words, (job.after_id,))
    words = f"It waits for job {parent.pk} ({parent.handler}), which is {parent.state}"
    if parent.state in LIVE:
        return Reason("waits", f"{words}.", (parent.pk,))
    then = "lets it go on" if parent.state in DONE else "cancels it"
    return Reason("parent_finished", f"{words}: the sweeper {then} within seconds.", (parent.pk,))


# --- running --------------------------------------------------------------------------------------

_EXPIRED = f"SELECT lease_until < {clock.NOW} FROM jobs_job WHERE id = %(id)s"


def _runs(job: Job) -> list[Reason]:
    handler = registry.find(job.handler)
    of = f" of {handler.max_attempts}" if handler else ""
    words = (
        f"{job.worker or 'A worker without a name'} runs it since {when(job.started_at)}: "
        f"attempt {job.attempt}{of}, claim {job.claim_no}."
    )
    found = [Reason("running", words)]
    if job.progress_done is not None:
        total = "" if job.progress_total is None else f" of {job.progress_total}"
        note = f" ({job.progress_note})" if job.progress_note else ""
        found.append(Reason("progress", f"It is at {job.progress_done}{total}{note}."))
    found.append(_lease(job))
    if job.cancel_requested:
        words = (
            "It was asked to stop. It does when its handler calls `check_cancelled()`, or instead "
            "of its next try."
        )
        found.append(Reason("cancel_requested", words))
    return found


def _lease(job: Job) -> Reason:
    if job.lease_until is None:
        words = "It has no lease, so nobody will take it back: run `manage.py fsck --fix`."
        return Reason("no_lease", words)
    with connection.cursor() as cursor:
        cursor.execute(_EXPIRED, clock.params() | {"id": job.pk})
        expired = bool((cursor.fetchone() or (False,))[0])
    if not expired:
        words = f"Its lease holds until {when(job.lease_until)}; the worker prolongs it."
        return Reason("lease", words)
    words = f"Its lease ended {when(job.lease_until)}: its worker is silent. {_after_rescue(job)}"
    return Reason("lease_expired", words)


def _after_rescue(job: Job) -> str:
    handler = registry.find(job.handler)
    if handler is None:
        return "No handler of its name is known here: after an hour the tick moves it to failed."
    if job.cancel_requested:
        return "The tick cancels it, as was asked for."
    if job.attempt >= handler.max_attempts:
        return f"The tick moves it to failed: it has used its {handler.max_attempts} attempts."
    return "The tick gives it to another, alone."


# --- finished -------------------------------------------------------------------------------------


def _failed(job: Job) -> Reason:
    if not job.claim_no:
        words = f"It failed {when(job.finished_at)} and was never tried: {_error(job)}."
        return Reason("failed_untried", words)
    if job.error.startswith("no handler is called "):
        return Reason("unknown_handler", f"It failed {when(job.finished_at)}: {_error(job)}.")
    last = Attempt.objects.filter(job=job.pk, claim_no=job.claim_no).only("outcome").first()
    handler = registry.find(job.handler)
    said = f"It failed {when(job.finished_at)}"
    if job.error == LOST or (last is not None and last.outcome == Attempt.Outcome.LOST):
        words = f"{said}: {_error(job)}, at attempt {job.attempt}, its last."
        return Reason("workers_lost", words)
    if handler is not None and job.attempt < handler.max_attempts:
        words = (
            f"{said} for good, at attempt {job.attempt} of {handler.max_attempts}: {_error(job)}. "
            "Its handler said that another try would not help."
        )
        return Reason("permanent", words)
    words = f"{said}: all {job.attempt} attempts are used up. The last said: {_error(job)}."
    return Reason("attempts_used_up", words)


def _error(job: Job) -> str:
    """The error as a part of a sentence."""
    return job.error.strip().rstrip(".") or "without a reason"


def _why(job: Job, word: str) -> str:
    """`cancelled by alice`, whatever the error says."""
    return job.error if job.error.startswith(word) else f"{word}: {job.error or 'no reason given'}"


def _replay(job: Job) -> Reason:
    words = (
        f"`manage.py jobs replay {job.pk}`, or Replay in the admin, puts it back to pending with "
        "all its attempts."
    )
    return Reason("replay", words)
