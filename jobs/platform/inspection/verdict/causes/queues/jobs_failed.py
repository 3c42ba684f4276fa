from datetime import datetime, timedelta

from django.contrib.auth.models import User

from tailrace.db import clock, row_wait
from tailrace.db.query import query
from tailrace.db.row_ids import row_id
from tailrace.jobs.models import FailureGroup
from tailrace.jobs.platform.inspection.display.formatting import count, timestamp, when
from tailrace.jobs.platform.inspection.verdict.cause import (
    Button,
    Cause,
    Check,
    Facts,
    Link,
    admin_link,
)
from tailrace.jobs.runtime import audit

RECENT_SECONDS = 3600
FADES_SECONDS = 600
"""A failed job gets no worse by waiting: after this time, other causes come first."""
SILENCE = timedelta(days=1)
MAX_COUNTED = 100
"""The number of newest failed jobs of a queue that are read."""
MAX_NAMED = 5

_FAILED = f"""
SELECT name, kind, failed, id, at, attempt, (
  SELECT error_class FROM tailrace_jobs_attempt WHERE job_id = recent.id ORDER BY claim_no DESC
    LIMIT 1), at < {clock.NOW} - make_interval(secs => {FADES_SECONDS})
FROM (
  SELECT q.name, job.failure_group_id AS kind, count(*) AS failed, max(job.finished_at) AS at,
    (array_agg(job.id ORDER BY job.finished_at DESC))[1] AS id,
    (array_agg(job.attempt ORDER BY job.finished_at DESC))[1] AS attempt
  FROM tailrace_jobs_queue q CROSS JOIN LATERAL (
    SELECT id, attempt, finished_at, failure_group_id
    FROM tailrace_jobs_live WHERE handler = q.name AND state = 'failed'
    ORDER BY id DESC LIMIT {MAX_COUNTED}) job
  WHERE job.finished_at > {clock.NOW} - make_interval(secs => {RECENT_SECONDS})
    AND NOT EXISTS (SELECT 1 FROM tailrace_jobs_failuregroup g
      WHERE g.id = job.failure_group_id AND g.silenced_until > {clock.NOW})
  GROUP BY q.name, job.failure_group_id
) recent ORDER BY 8, failed DESC, name, kind LIMIT {MAX_NAMED}
"""


class JobsFailed(Check):
    """Jobs that failed permanently in the last hour, by queue and kind of failure, except silenced
    failures."""

    code = "jobs_failed"
    rank = 80
    button = Button("Silence for a day", "tailrace_jobs.change_failuregroup")

    def causes(self, facts: Facts) -> list[Cause]:
        return [_cause(*row) for row in query(_FAILED)]

    def mend(self, user: User, subject: str) -> str:
        until = clock.now() + SILENCE
        group = FailureGroup.objects.filter(pk=row_id(subject) or 0).first()
        if group is None:
            return f"There is no kind of failure {subject}."
        with row_wait.bounded(FailureGroup, id=group.pk):
            FailureGroup.objects.filter(pk=group.pk).update(silenced_until=until)
            message = f"silenced until {timestamp(until)}"
            audit.record(user, FailureGroup, message, [(group.pk, str(group))])
        return f"{group}: silenced until {timestamp(until)}."


def _cause(
    name: str, kind: int | None, failed: int, id: int, at: datetime, attempt: int,
    error: str | None, is_old: bool,
) -> Cause:  # fmt: skip
    of = f" with {error}" if error else ""
    return Cause(
        f"{count(failed, 'job', MAX_COUNTED)} of {name} failed permanently in the last hour. The"
        f" last is job {id}, after {count(attempt, 'attempt')}{of}, at {when(at)}.",
        subject="" if kind is None else str(kind),
        since=at,
        advice="Fix the error, then replay the job.",
        link=admin_link(f"Job {id}", "job_change", id),
        action=None if kind is None else _replay(kind),
        fades=is_old,
    )


def _replay(kind: int) -> Link:
    return Link(
        "Replay all of this kind…", "admin:tailrace_jobs_job_all", ("replay",),
        "tailrace_jobs.view_job tailrace_jobs.replay_job", f"state=failed&failure={kind}",
    )  # fmt: skip
