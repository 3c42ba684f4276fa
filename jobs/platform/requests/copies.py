"""Run a job again with another payload, as a new job that refers to the original."""

from django.contrib.auth.models import User

from tailrace.db.query import execute
from tailrace.jobs.engine import registry
from tailrace.jobs.handler import NO_LANE, Handler
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection import visibility
from tailrace.jobs.platform.requests.errors import Fault, InvalidRequest, NotPermitted
from tailrace.jobs.platform.requests.job_request import handler_for
from tailrace.jobs.runtime import audit

MAX_COPIES = 20
"""The maximum number of copies that a job's page shows."""

_LINK = "UPDATE tailrace_jobs_live SET copy_of = %(of)s WHERE id = %(id)s AND copy_of IS NULL"


def job_to_copy(user: User, id: int) -> Job:
    """Return the job that the user wants to run again, with its payload.

    The user must be permitted to see jobs and payloads, and either to request jobs of this handler
    or to change the payload of any job. Raises NotPermitted, or InvalidRequest if the job does not
    exist, has no payload of its own or belongs to an event.
    """
    for permission in (visibility.VIEW_JOB, visibility.VIEW_JOB_PAYLOAD):
        if not user.has_perm(permission):
            raise NotPermitted(f"you need the permission {permission}", permission)
    job = Job.objects.filter(pk=id).first()
    if job is None:
        raise InvalidRequest([Fault(("copy_of",), f"there is no job {id}")])
    if visibility.hidden_jobs(user, [job]):
        raise NotPermitted(f"job {id} belongs to an event that you may not see")
    _check_handler(user, job)
    if job.event_id is not None:
        detail = f"job {id} has the payload of event {job.event_id}: replay the job instead"
        raise InvalidRequest([Fault(("copy_of",), detail)])
    return job


def _check_handler(user: User, job: Job) -> None:
    """Raise an error unless the user may run jobs of this handler again with another payload."""
    handler = registry.find(job.handler)
    takes_payload = handler is not None and handler.Payload is not None
    if takes_payload and user.has_perm(visibility.CHANGE_JOB_PAYLOAD):
        return
    if handler is None or handler.request_permission is not None:
        handler_for(user, job.handler)
    elif takes_payload:
        needed = visibility.CHANGE_JOB_PAYLOAD
        detail = f"jobs of {job.handler} cannot be requested; to run one again, you need the"
        raise NotPermitted(f"{detail} permission {needed}", needed)
    else:
        detail = f"{job.handler} takes no payload: replay job {job.pk} instead"
        raise InvalidRequest([Fault(("copy_of",), detail)])


def lane_of_copy(job: Job) -> str:
    """Return the lane of a copy; empty if its handler derives the lane from the payload."""
    handler = registry.find(job.handler)
    by_payload = handler is not None and type(handler).payload_lane is not Handler.payload_lane
    return "" if by_payload or job.lane == NO_LANE else job.lane


def link(user: User, id: int, copy_of: int) -> None:
    """Record that the new job `id` is a copy of the job `copy_of`, also in its audit log."""
    if execute(_LINK, id=id, of=copy_of) != 1:
        raise AssertionError(f"the new job {id} is already a copy")
    audit.record(user, Job, f"run again as job {id}", [(copy_of, f"job {copy_of}")])


def copies_of(id: int) -> list[int]:
    """Return the ids of the job's copies, newest first, at most MAX_COPIES."""
    rows = Job.objects.filter(copy_of=id).order_by("-pk").values_list("pk", flat=True)
    return list(rows[:MAX_COPIES])
