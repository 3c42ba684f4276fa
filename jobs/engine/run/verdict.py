"""A verdict: how one claim of a job ends. `failure` makes the verdicts on handlers that raised."""

import inspect
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from pydantic_core import to_jsonable_python

from tailrace.events.publishing.validation import clean
from tailrace.jobs.engine.failures.fingerprint import Fingerprint
from tailrace.jobs.handler import ClaimedJob, Outcome, Permanent
from tailrace.jobs.models import Attempt
from tailrace.jobs.runtime.states import OVER, State

log = structlog.get_logger(__name__)

RESULT_LIMIT = 65536
MESSAGE_LIMIT = 2000


@dataclass(slots=True)
class Verdict:
    """How one claim of a job ends: the values that `settle` writes."""

    job: ClaimedJob
    state: State
    attempt: Attempt.Outcome | None = None
    """The outcome of the attempt, if the claim gets a row in the table of attempts."""
    delay: float = 0.0
    """Seconds until the job is due again."""
    until: datetime | None = None
    """The earliest time at which the job is due again, by the database's clock."""
    charged: bool = True
    """Whether the claim counts as an attempt."""
    result: str | None = None
    error: str = ""
    error_class: str = ""
    traceback: str = ""
    exception: BaseException | None = None
    suspect_group: int | None = None
    """For a job that is pending again: see `Job.suspect_group`."""
    failure: Fingerprint | None = None
    """The fingerprint of a failed attempt, by which failures are grouped."""
    silenced: bool = False
    """True if an operator has silenced failures like this one. Set by the settlement."""

    @property
    def failure_group(self) -> int | None:
        return self.failure.id if self.failure else None

    @property
    def is_the_end(self) -> bool:
        """Whether the job has ended and moves to the history."""
        return self.state in OVER


def completed(job: ClaimedJob, result: Any) -> Verdict:
    """Return the verdict on a job whose handler returned `result`.

    If the result cannot be stored, the job is completed without a result, because its effect has
    happened, and `error` has the reason. If the handler returned an outcome, it is raised.
    """
    if result is None:
        return Verdict(job, State.COMPLETED)
    if outcome := outcome_of(result):
        raise outcome
    if _did_not_run(result):
        raise Permanent(
            f"{job.handler.name} returned a {type(result).__name__}, so its code did not run:"
            " write `async def handle` to await it, or a plain function without yield"
        )
    try:
        return Verdict(job, State.COMPLETED, result=_as_json(result))
    except Exception as error:  # the result's own methods may raise any error
        reason = f"result not stored: {message_of(error)}"[:MESSAGE_LIMIT]
        log.warning("run.result_not_stored", queue=job.handler.name, job_id=job.id, error=reason)
        return Verdict(job, State.COMPLETED, error=reason)


def outcome_of(returned: Any) -> BaseException | None:
    """Return the exception if the handler returned an outcome, or the class of an outcome."""
    if isinstance(returned, type) and issubclass(returned, Outcome):
        try:
            return returned()
        except TypeError as error:  # Snooze needs arguments
            return error
    return returned if isinstance(returned, Outcome) else None


def postponed(job: ClaimedJob, reason: str, delay: float) -> Verdict:
    """Return the verdict on a job whose call did not begin: it is due in `delay` seconds. No
    attempt is counted or recorded."""
    return Verdict(job, State.PENDING, charged=False, error=reason, delay=delay)


def handed_back(job: ClaimedJob) -> Verdict:
    """Return the verdict on a job that goes back to its queue: it is pending again at once. No
    attempt is counted or recorded."""
    return Verdict(job, State.PENDING, charged=False, suspect_group=job.suspect_group)


def _did_not_run(result: Any) -> bool:
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that it was never awaited
        return True
    return inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)


def _as_json(value: Any) -> str:
    """Return the result as JSON text: times in ISO format, Decimal and UUID as text, sets as lists,
    models as objects. Raises ValueError if that is not possible, or any error of the result's
    methods."""
    try:
        text = json.dumps(value, allow_nan=False)
    except TypeError:
        text = json.dumps(to_jsonable_python(value), allow_nan=False)
    if len(text) > RESULT_LIMIT:
        raise ValueError(f"it has {len(text)} bytes; at most {RESULT_LIMIT} are allowed")
    if "\\u" in text and clean(json.loads(text))[1]:
        raise ValueError("it contains a NUL character or half a surrogate pair")
    return text


def message_of(error: BaseException) -> str:
    """Return the message of the error, cut at MESSAGE_LIMIT."""
    try:
        return storable(str(error))[:MESSAGE_LIMIT]
    except Exception:  # an exception whose __str__ raises must not fail its batch
        return type(error).__name__


def storable(text: str) -> str:
    """Return the text without the characters that PostgreSQL cannot store."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
