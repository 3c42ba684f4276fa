"""Jobs as the API returns them: fields that the user may not see are masked, as in the admin."""

import hashlib
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.platform.inspection.explain.time_spent import spans
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD, mask_attempts, mask_jobs
from tailrace.web.api.jobs.schemas import AttemptOut, JobDetails, JobOut, ProgressOut, SpanOut

MAX_ATTEMPTS = 100


def shown(user: User, jobs: Sequence[Job]) -> list[JobOut]:
    """Return the jobs for a list, with masked fields."""
    mask_jobs(user, jobs)
    return [JobOut(**_columns(job)) for job in jobs]


def details(user: User, job: Job) -> JobDetails:
    """Return a job with its payload, attempts and times, with masked fields."""
    hidden = bool(mask_jobs(user, [job]))
    sees_payload = user.has_perm(VIEW_JOB_PAYLOAD) and not hidden
    attempts = Attempt.objects.filter(job=job.pk).order_by("-claim_no").defer("traceback")
    rows = list(attempts[:MAX_ATTEMPTS])
    mask_attempts(user, rows, hidden)
    return JobDetails(
        **_columns(job),
        payload=job.payload if sees_payload else None,
        result=job.result if sees_payload else None,
        attempts=[AttemptOut.model_validate(attempt) for attempt in rows],
        time_spent=[SpanOut.model_validate(span) for span in spans(job, user, hidden)],
        version=version(job),
    )


def version(job: Job) -> str:
    """Return a string that changes with the job's state and progress."""
    parts = tuple(getattr(job, name) for name in VERSION_COLUMNS)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


VERSION_COLUMNS = (
    "state", "attempt", "claim_no", "cancel_requested", "progress_done", "progress_total",
)  # fmt: skip


def _columns(job: Job) -> dict[str, Any]:
    done, total, note = job.progress_done, job.progress_total, job.progress_note
    progress = None if done is None else ProgressOut(done=done, total=total, note=note)
    columns = {name: getattr(job, name) for name in JobOut.model_fields if name != "progress"}
    return columns | {"progress": progress}
