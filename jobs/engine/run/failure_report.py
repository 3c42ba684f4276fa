"""Report the verdicts that are failures to the error reporters."""

from db import connections
from jobs.engine.run.verdict import Verdict
from jobs.models import Attempt
from jobs.report import Failure, report_failure


def report(verdict: Verdict) -> None:
    """Report the verdict if it is a failure."""
    if verdict.attempt not in (Attempt.Outcome.RETRIED, Attempt.Outcome.FAILED):
        return
    job = verdict.job
    failure = Failure(
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
    with connections.default():
        report_failure(failure)
