"""Request a job, list jobs, and follow one."""

from typing import Annotated

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from ninja import Body, Header, Query, Router, Status

from jobs.enqueue import Blocked
from jobs.models import Job
from jobs.requests import errors, request_keys
from jobs.requests.job_request import JobRequest
from jobs.requests.request_job import Requested, request_job
from jobs.result import looks
from jobs.states import FINISHED
from web.api.auth import Needs, caller
from web.api.jobs.filters import Filters, below, window
from web.api.jobs.schemas import (
    JobDetails,
    JobFilter,
    JobIn,
    JobPage,
    RequestedOut,
    WaitParams,
)
from web.api.jobs.showing import VERSION_COLUMNS, details, shown, version
from web.api.problems import Fault, Problem, find_row, invalid, of_faults, pointer
from web.api.waiting import waiting
from web.pagination import encode

router = Router()
READ = Needs("jobs:read", "jobs.view_job")
WRITE = Needs("jobs:write")
BUSY_SECONDS = "2"


@router.post(
    "", auth=WRITE, response={200: RequestedOut, 201: RequestedOut}, summary="Request a job"
)
def create_job(
    request: HttpRequest,
    response: HttpResponse,
    body: Body[JobIn],
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=request_keys.MAX_LENGTH,
            description="the same for all tries of one request, so that it makes one job; kept for"
            " 24 hours",
        ),
    ] = None,
) -> Status[RequestedOut]:
    """Needs the `request_permission` of the handler; a handler without one takes no requests.

    201 with a new job. 200 with the job that there is: of the same `Idempotency-Key`, or an
    unstarted one of the same `unique_key`, into which the new one was merged. 409 while another
    request with the key is being worked on, 422 if the key came with another request.
    """
    wanted = JobRequest(**body.model_dump() | {"lane": body.lane or ""})
    requested = _requested(caller(request).user, wanted, idempotency_key or "")
    state = Job.objects.filter(pk=requested.id).values_list("state", flat=True).first()
    if state is None:
        raise Problem(410, f"job {requested.id} of this Idempotency-Key was deleted since")
    response["Location"] = f"/api/jobs/{requested.id}"
    return Status(
        201 if requested.is_new else 200,
        RequestedOut(id=requested.id, handler=wanted.handler, state=state, is_new=requested.is_new),
    )


def _requested(user: User, wanted: JobRequest, key: str) -> Requested:
    try:
        return request_job(user, wanted, key)
    except errors.InvalidRequest as error:
        faults = [Fault(detail=f.detail, pointer=pointer(f.path)) for f in error.faults]
        raise of_faults(faults) from None
    except errors.NotPermitted as error:
        kind = "handler-closed" if error.permission is None else "permission-missing"
        raise Problem(403, str(error), kind=kind) from None
    except errors.KeyReused as error:
        fault = Fault(detail=str(error), header="Idempotency-Key")
        raise invalid(str(error), [fault], kind="key-reused") from None
    except errors.KeyInUse as error:
        retry = {"Retry-After": BUSY_SECONDS}
        raise Problem(409, f"{error}; try again", kind="key-in-use", headers=retry) from None
    except Blocked as error:
        retry = {"Retry-After": BUSY_SECONDS}
        raise Problem(503, str(error), kind="busy", headers=retry) from None


@router.get("", auth=READ, response=JobPage, summary="List jobs")
def list_jobs(request: HttpRequest, query: Query[JobFilter]) -> JobPage:
    """Newest first. What you may not see of a job is masked, as in the admin."""
    filters = Filters(query.handler, query.state, query.event, query.schedule, query.flow)
    rows, end = window(filters, below(query.cursor))
    jobs = list(rows[: query.limit + 1])
    if len(jobs) > query.limit:
        jobs = jobs[: query.limit]
        end = jobs[-1].pk
    return JobPage(
        items=shown(caller(request).user, jobs), next=None if end is None else encode(end)
    )


@router.get("/{int:id}", auth=READ, response=JobDetails, summary="Get a job, or wait for it")
def get_job(request: HttpRequest, id: int, params: Query[WaitParams]) -> JobDetails:
    """With `wait`, the response comes when the job is finished, or when its `version` is no longer
    `after`, or when the seconds are over.

    Few requests wait at a time, and fewer of one user; to the others the answer comes at once.
    """
    user = caller(request).user
    job = find_row(Job.objects.all(), id, "job")
    if params.wait and not _is_over(job, params.after):
        with waiting.place(user.pk) as has_place:
            if has_place:
                _wait(id, params)
        job = find_row(Job.objects.all(), id, "job")
    return details(user, job)


def _wait(id: int, params: WaitParams) -> None:
    columns = Job.objects.filter(pk=id).only(*VERSION_COLUMNS)
    for _ in looks(params.wait):
        job = columns.first()
        if job is None or _is_over(job, params.after):
            return


def _is_over(job: Job, after: str | None) -> bool:
    return job.state in FINISHED or (after is not None and version(job) != after)
