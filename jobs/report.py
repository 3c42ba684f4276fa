"""report: every failed attempt is told to the error reporters, with event, job and handler."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import structlog
from django.conf import settings
from django.utils.module_loading import import_string

from jobs.models import Attempt
from jobs.run import Verdict

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt. Holds no payload: reporters send it to other systems."""

    handler: str
    job_id: int
    event_id: int | None
    event_type: str
    routing_key: str
    attempt: int
    max_attempts: int
    claim_no: int
    final: bool
    """True when the job is now `failed`; False when it will be tried again in `retry_in`."""
    retry_in: float
    error: str
    error_class: str
    exception: BaseException | None


Reporter = Callable[[Failure], None]


def report(verdict: Verdict) -> None:
    """Tell the reporters if the verdict is a failure."""
    if verdict.attempt in (Attempt.Outcome.RETRIED, Attempt.Outcome.FAILED):
        tell(_failure(verdict))


def tell(failure: Failure) -> None:
    """Tell the reporters of a failure. A reporter that fails hinders nobody."""
    for reporter in reporters():
        try:
            reporter(failure)
        except Exception:
            log.exception("report.reporter_failed", reporter=getattr(reporter, "__name__", "?"))


@cache
def reporters() -> tuple[Reporter, ...]:
    """Return the callables that JOBS_ERROR_REPORTERS names by their dotted paths."""
    return tuple(import_string(path) for path in settings.JOBS_ERROR_REPORTERS)


def to_log(failure: Failure) -> None:
    """The reporter that is always there."""
    write = log.error if failure.final else log.warning
    write(
        "job.failed" if failure.final else "job.retry",
        queue=failure.handler,
        job_id=failure.job_id,
        event_id=failure.event_id,
        event_type=failure.event_type,
        routing_key=failure.routing_key,
        attempt=f"{failure.attempt}/{failure.max_attempts}",
        claim_no=failure.claim_no,
        retry_in=None if failure.final else round(failure.retry_in, 1),
        error=failure.error,
        error_class=failure.error_class,
    )


def _failure(verdict: Verdict) -> Failure:
    job = verdict.job
    return Failure(
        handler=job.handler.name,
        job_id=job.id,
        event_id=job.event.id if job.event else None,
        event_type=job.event.type if job.event else "",
        routing_key=job.routing_key,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        claim_no=job.claim_no,
        final=verdict.attempt == Attempt.Outcome.FAILED,
        retry_in=verdict.delay,
        error=verdict.error,
        error_class=verdict.error_class,
        exception=verdict.exception,
    )
