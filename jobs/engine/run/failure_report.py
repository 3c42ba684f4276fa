"""Report failed attempts to the error reporters."""

from tailrace.db import connections
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.models import Attempt
from tailrace.jobs.report import Failure, report_failure
from tailrace.jobs.reported_errors import reported_exception, reported_message


def report(verdict: Verdict) -> None:
    """Report the verdict if it is a failure."""
    if failure := failure_of(verdict):
        with connections.default():
            report_failure(failure)


def failure_of(verdict: Verdict) -> Failure | None:
    """Return the Failure to report; None if the verdict is not a failure."""
    if verdict.attempt not in (Attempt.Outcome.RETRIED, Attempt.Outcome.FAILED):
        return None
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
        error=reported_message(verdict.error_class, verdict.error),
        error_class=verdict.error_class,
        silenced=verdict.silenced,
        exception=None if verdict.exception is None else reported_exception(verdict.exception),
    )
