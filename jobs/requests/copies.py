"""Run a job again with another payload: as a new job, which names the one that it is a copy of."""

from django.contrib.auth.models import User

from tailrace.db.query import execute
from tailrace.jobs import registry
from tailrace.jobs.handler import NO_LANE, Handler
from tailrace.jobs.models import Job
from tailrace.jobs.operations import audit
from tailrace.jobs.requests.errors import Fault, InvalidRequest, NotPermitted
from tailrace.jobs.requests.job_request import handler_for
from tailrace.jobs.visibility import CHANGE_JOB_PAYLOAD, VIEW_JOB, VIEW_JOB_PAYLOAD, hidden_jobs

MAX_COPIES = 20
"""Of a job that its page names."""

_LINK = "UPDATE tailrace_jobs_live SET copy_of = %(of)s WHERE id = %(id)s AND copy_of IS NULL"


def job_to_copy(user: User, id: int) -> Job:
    """Return the job that the user wants to run again, with its payload.

    They have to see jobs and payloads, and either may request jobs of its handler, or may change
    the payload of any job. Raises InvalidRequest, also for the job of an event, whose payload is
    the event's, or NotPermitted.
    """
    for permission in (VIEW_JOB, VIEW_JOB_PAYLOAD):
        if not user.has_perm(permission):
            raise NotPermitted(f"you need the permission {permission}", permission)
    job = Job.objects.filter(pk=id).first()
    if job is None:
        raise InvalidRequest([Fault(("copy_of",), f"there is no job {id}")])
    if hidden_jobs(user, [job]):
        raise NotPermitted(f"job {id} is about something that you may not see")
    _check_handler(user, job)
    if job.event_id is not None:
        detail = f"job {id} is of event {job.event_id}, whose payload it has: replay it instead"
        raise InvalidRequest([Fault(("copy_of",), detail)])
    return job


def _check_handler(user: User, job: Job) -> None:
    """Raise unless the user may run jobs of this handler again with a payload of their choice."""
    handler = registry.find(job.handler)
    takes_payload = handler is not None and handler.Payload is not None
    if takes_payload and user.has_perm(CHANGE_JOB_PAYLOAD):
        return
    if handler is None or handler.request_permission is not None:
        handler_for(user, job.handler)
    elif takes_payload:
        detail = f"{job.handler} takes no jobs on request; to run one of them again, you need the"
        raise NotPermitted(f"{detail} permission {CHANGE_JOB_PAYLOAD}", CHANGE_JOB_PAYLOAD)
    else:
        detail = f"{job.handler} takes no payload that could be changed: replay job {job.pk}"
        raise InvalidRequest([Fault(("copy_of",), detail)])


def lane_of_copy(job: Job) -> str:
    """Return the lane of a copy; empty: its handler tells it from the payload, maybe another."""
    handler = registry.find(job.handler)
    by_payload = handler is not None and type(handler).payload_lane is not Handler.payload_lane
    return "" if by_payload or job.lane == NO_LANE else job.lane


def link(user: User, id: int, copy_of: int) -> None:
    """Write which job a new job is a copy of, and log it at that job."""
    if execute(_LINK, id=id, of=copy_of) != 1:
        raise AssertionError(f"job {id} is new, and is a copy already")
    audit.record(user, Job, f"run again as job {id}", [(copy_of, f"job {copy_of}")])


def copies_of(id: int) -> list[int]:
    """Return the newest jobs that this one was run again as."""
    rows = Job.objects.filter(copy_of=id).order_by("-pk").values_list("pk", flat=True)
    return list(rows[:MAX_COPIES])
