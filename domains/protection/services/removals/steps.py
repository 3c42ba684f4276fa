"""The steps of removal requests: their data, their outcomes, and the moves that follow."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import structlog
from pydantic import BaseModel

from tailrace.db.clock import DAY_SECONDS
from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.models.removal import RemovalStep
from tailrace.domains.protection.services.removals import moves
from tailrace.domains.protection.services.removals.brokers import (
    Broker,
    InvalidBrokers,
    UnknownBroker,
    find_broker,
)
from tailrace.domains.protection.services.removals.person import Person, decrypted
from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus
from tailrace.jobs.handler import ClaimedJob, Permanent, Retry
from tailrace.net.encryption import DecryptionError, decrypt
from tailrace.subscriptions.models import PlanSubscription

log = structlog.get_logger(__name__)

STATES_OF = {
    RemovalStep.SUBMIT: (RemovalState.PENDING,),
    RemovalStep.CONFIRM: (RemovalState.SUBMITTED,),
    RemovalStep.VERIFY: (RemovalState.SUBMITTED, RemovalState.AWAITING, RemovalState.REMOVED),
}


class StepPayload(BaseModel):
    request: int
    step: RemovalStep


class Outcome(Enum):
    SUBMITTED = "submitted"
    CONFIRMED = "confirmed"
    LISTED = "listed"
    NOT_LISTED = "not listed"
    NEEDS_PERSON = "needs a person"
    FAILED = "failed"
    """A later attempt may succeed."""
    REFUSED = "refused"
    """No attempt can succeed with the current settings."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The outcome of a step and its reason, without the person's data."""

    outcome: Outcome
    reason: str = ""
    after: float | None = None
    """Seconds until the next attempt, if the broker named a time."""
    confirm_url: str = ""

    def delivery(self) -> DeliveryResult:
        """Return the result for the broker's circuit breaker and the job."""
        if self.outcome is Outcome.FAILED:
            return DeliveryResult(DeliveryStatus.FAILED, self.reason, self.after)
        if self.outcome is Outcome.REFUSED:
            return DeliveryResult(DeliveryStatus.REJECTED, self.reason)
        return DeliveryResult(DeliveryStatus.SENT, result={"outcome": self.outcome.value})


@dataclass(frozen=True, slots=True)
class Step:
    """The data that a handler needs for the step of one job."""

    row: RemovalRequest
    broker: Broker
    person: Person
    confirm_url: str = ""

    @property
    def idempotency_key(self) -> str:
        """The same key for each attempt of this submission, such as after a crash."""
        return f"removal_{self.row.pk}_{self.row.submission}"


def steps_of(jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, Step]]:
    """Yield the jobs whose step can be done now; set the outcomes of the others."""
    rows = RemovalRequest.objects.in_bulk({job.payload.request for job in jobs})
    subscriptions = PlanSubscription.objects.served().filter(account__is_active=True)
    users = {row.user_id for row in rows.values()}
    served = set(subscriptions.filter(account__in=users).values_list("account", flat=True))
    for job in jobs:
        row = rows.get(job.payload.request)
        if row is None:
            job.skip("the request, or its account, was deleted")
        elif row.job_id != job.id or row.state not in STATES_OF[job.payload.step]:
            job.skip("the request has moved on without this job")
        elif row.user_id not in served:
            job.snooze("the account has no active plan", seconds=DAY_SECONDS)
        elif step := _step(job, row):
            yield job, step


def _step(job: ClaimedJob, row: RemovalRequest) -> Step | None:
    try:
        broker = find_broker(row.broker)
        person = decrypted(row.person)
        confirm_url = decrypt(row.confirm_url) if row.confirm_url else ""
    except UnknownBroker as error:
        _park(job, row, f"{error}: it is no longer in PROTECTION_BROKERS_FILE")
    except (InvalidBrokers, DecryptionError) as error:  # an operator has to repair it
        job.snooze(str(error)[:500], seconds=3600)
    else:
        if job.payload.step != RemovalStep.VERIFY or broker.verification is not None:
            return Step(row, broker, person, confirm_url)
        _park(job, row, "check yourself: there is no known page where this broker lists people")
    return None


def _park(job: ClaimedJob, row: RemovalRequest, why: str) -> None:
    try:
        moves.park(row, why)
    except moves.MovedOn as error:
        job.skip(str(error))
    else:
        job.complete({"outcome": Outcome.NEEDS_PERSON.value})


def record_all(ends: Iterable[tuple[ClaimedJob, RemovalRequest, StepResult]]) -> None:
    """Record each result by itself.

    A step whose result could not be recorded is done again: the sweeper finds its request
    (`protection.removals_have_their_job`).
    """
    for job, row, result in ends:
        try:
            record(job, row, result)
        except Exception:
            log.exception("removal.not_recorded", request=row.pk, job_id=job.id)


def record(job: ClaimedJob, row: RemovalRequest, result: StepResult) -> None:
    """Move the request on after its step. A failure is recorded only with the last attempt."""
    if result.outcome is Outcome.FAILED and not _has_failed(job):
        return
    try:
        _record(row, result)
    except moves.MovedOn as error:
        log.info("removal.moved_on", request=row.pk, outcome=result.outcome.value, why=str(error))
        if result.outcome in (Outcome.SUBMITTED, Outcome.CONFIRMED):
            moves.happened_after_end(row, f"{result.outcome.value} before the request ended")


def _record(row: RemovalRequest, result: StepResult) -> None:
    match result.outcome:
        case Outcome.SUBMITTED:
            moves.submitted(row, confirm_url=result.confirm_url)
        case Outcome.CONFIRMED:
            moves.confirmed(row)
        case Outcome.LISTED:
            moves.still_listed(row)
        case Outcome.NOT_LISTED:
            moves.not_listed(row)
        case Outcome.FAILED if row.step == RemovalStep.VERIFY:
            moves.still_listed(row, unclear=result.reason)
        case _:
            moves.park(row, result.reason)


def _has_failed(job: ClaimedJob) -> bool:
    if isinstance(job.outcome, Permanent):
        return True
    return isinstance(job.outcome, Retry) and job.attempt >= job.max_attempts
