"""A verdict: how one claim of a job ends, worked out from what the handler returned or raised."""

import inspect
import json
import traceback
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from pydantic_core import to_jsonable_python

from tailrace.events.errors import UnreadablePayload
from tailrace.events.validation import clean
from tailrace.jobs.failures.fingerprint import Fingerprint, fingerprint, frame_of
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Attempt
from tailrace.jobs.outcomes import (
    Cancel,
    Interrupted,
    LeaseLost,
    Outcome,
    Permanent,
    Retry,
    Skip,
    Snooze,
)
from tailrace.jobs.reported_errors import class_name
from tailrace.jobs.states import OVER, State

log = structlog.get_logger(__name__)

TRACEBACK_LIMIT = 8192
RESULT_LIMIT = 65536
MESSAGE_LIMIT = 2000
SHORTEST_SNOOZE = 1.0
"""Seconds; a handler that is never ready must not spin."""
LONGEST_DELAY = 366 * 86_400.0
"""Seconds; the Retry-After of a destination may be any number."""


@dataclass(slots=True)
class Verdict:
    """How one claim of a job ends: what settle writes."""

    job: ClaimedJob
    state: State
    attempt: Attempt.Outcome | None = None
    """Set when the claim gets a row among the attempts."""
    delay: float = 0.0
    until: datetime | None = None
    """Not due before this time by the database's clock, however short the delay."""
    charged: bool = True
    result: str | None = None
    error: str = ""
    error_class: str = ""
    traceback: str = ""
    exception: BaseException | None = None
    suspect_group: int | None = None
    """Of a job that is pending again: see `Job.suspect_group`."""
    failure: Fingerprint | None = None
    """Of an attempt that failed: what it has in common with others."""
    silenced: bool = False
    """Set by the settlement: an operator has silenced failures like this one."""

    @property
    def is_the_end(self) -> bool:
        """Whether the job is over, and belongs to the history."""
        return self.state in OVER


def completed(job: ClaimedJob, result: Any) -> Verdict:
    """Return the verdict on a job whose handler returned `result`.

    The effect has happened, so a result that cannot be stored does not undo it: the job is
    completed without a result, and its error says why. An outcome that is returned ends the job
    as if it was raised.
    """
    if result is None:
        return Verdict(job, State.COMPLETED)
    if outcome := outcome_of(result):
        return verdict_of(job, outcome)
    if _did_not_run(result):
        error = Permanent(
            f"{job.handler.name} returned a {type(result).__name__}, whose code did not run:"
            " write `async def handle` to await it, or a plain function without yield"
        )
        return verdict_of(job, error)
    try:
        return Verdict(job, State.COMPLETED, result=_as_json(result))
    except Exception as error:  # of the result's own methods, too
        why = f"result not stored: {_message(error)}"[:MESSAGE_LIMIT]
        log.warning("run.result_not_stored", queue=job.handler.name, job_id=job.id, error=why)
        return Verdict(job, State.COMPLETED, error=why)


def outcome_of(returned: Any) -> BaseException | None:
    """Return what raising the returned value would raise, if that is an outcome or its class."""
    if isinstance(returned, type) and issubclass(returned, Outcome):
        try:
            return returned()
        except TypeError as error:  # Snooze, which must say for how long
            return error
    return returned if isinstance(returned, Outcome) else None


def postponed(job: ClaimedJob, reason: str, delay: float) -> Verdict:
    """Return the verdict on a job that had no call of its own, and whose place was free for
    another: it is due in `delay` seconds, charged nothing, without a row among the attempts."""
    return Verdict(job, State.PENDING, charged=False, error=reason, delay=delay)


def handed_back(job: ClaimedJob, suspect_group: int | None = None) -> Verdict:
    """Return the verdict on a job that had no call of its own: it is pending again, charged
    nothing."""
    return Verdict(job, State.PENDING, charged=False, suspect_group=suspect_group)


def interrupted(job: ClaimedJob, suspect_group: int | None = None) -> Verdict:
    """Return the verdict on a job whose call was interrupted, since its worker had to end: it is
    pending again at once, charged nothing."""
    verdict = verdict_of(job, Interrupted())
    verdict.suspect_group = suspect_group
    return verdict


def verdict_of(job: ClaimedJob, error: BaseException) -> Verdict:
    """Return the verdict on a job whose handler raised `error`."""
    match error:
        case Skip():
            return Verdict(job, State.SKIPPED, error=_message(error))
        case Cancel():
            return Verdict(job, State.CANCELLED, error=_message(error))
        case Snooze():
            delay = max(SHORTEST_SNOOZE, error.seconds)
            verdict = _attempt(job, State.PENDING, error, Attempt.Outcome.SNOOZED, delay)
            verdict.until = error.until
            return verdict
        case LeaseLost():
            return handed_back(job)
        case Interrupted():
            return _attempt(job, State.PENDING, error, Attempt.Outcome.INTERRUPTED)
    if isinstance(error, Permanent | UnreadablePayload) or job.attempt >= job.max_attempts:
        return _attempt(job, State.FAILED, error, Attempt.Outcome.FAILED)
    after = error.after if isinstance(error, Retry) else None
    delay = job.handler.backoff.after(job.attempt) if after is None else after
    return _attempt(job, State.PENDING, error, Attempt.Outcome.RETRIED, delay)


def _attempt(
    job: ClaimedJob,
    state: State,
    error: BaseException,
    outcome: Attempt.Outcome,
    delay: float = 0.0,
) -> Verdict:
    message, error_class = _message(error) or type(error).__name__, class_name(error)
    is_failure = outcome in (Attempt.Outcome.RETRIED, Attempt.Outcome.FAILED)
    return Verdict(
        job,
        state,
        attempt=outcome,
        delay=min(max(0.0, float(delay)), LONGEST_DELAY),
        charged=outcome not in (Attempt.Outcome.SNOOZED, Attempt.Outcome.INTERRUPTED),
        error=message,
        error_class=error_class,
        traceback="" if isinstance(error, Outcome | Interrupted) else _traceback(error),
        exception=error,
        failure=fingerprint(job.handler.name, error_class, message, frame_of(error))
        if is_failure
        else None,
    )


def _did_not_run(result: Any) -> bool:
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that nobody awaited it
        return True
    return inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)


def _as_json(value: Any) -> str:
    """Return the result as JSON text: times in ISO form, Decimal and UUID as text, sets as lists,
    models as objects. ValueError says why that is not possible."""
    try:
        text = json.dumps(value, allow_nan=False)
    except TypeError:
        text = json.dumps(to_jsonable_python(value), allow_nan=False)
    if len(text) > RESULT_LIMIT:
        raise ValueError(f"it has {len(text)} bytes; the limit is {RESULT_LIMIT}")
    if "\\u" in text and clean(json.loads(text))[1]:
        raise ValueError("it has a NUL character or half a surrogate pair")
    return text


def _message(error: BaseException) -> str:
    try:
        return _storable(str(error))[:MESSAGE_LIMIT]
    except Exception:  # an exception whose __str__ raises must not fail its batch
        return type(error).__name__


def _traceback(error: BaseException) -> str:
    """Return the end of the traceback, where the cause is, in at most 8 KB."""
    text = _storable("".join(traceback.format_exception(error)))
    return text if len(text) <= TRACEBACK_LIMIT else "…" + text[-TRACEBACK_LIMIT + 3 :]


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
