"""Request a job, list jobs, get a job and wait for it."""

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from ninja import Body, Query, Router, Status

from tailrace.jobs.enqueue import Blocked
from tailrace.jobs.models import Job
from tailrace.jobs.operations.job_result import poll_times
from tailrace.jobs.platform.inspection.search.find import SearchResult, search
from tailrace.jobs.platform.inspection.search.terms import InvalidSearch
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD, hidden_jobs
from tailrace.jobs.platform.requests import errors
from tailrace.jobs.platform.requests.copies import lane_of_copy
from tailrace.jobs.platform.requests.job_request import JobRequest
from tailrace.jobs.platform.requests.request_job import Requested, request_job
from tailrace.jobs.runtime.states import FINISHED
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.faults import in_body
from tailrace.web.api.idempotency import KeyHeader, key_problems
from tailrace.web.api.jobs.filters import Filters, below, cursor_of, window
from tailrace.web.api.jobs.schemas import (
    JobDetails,
    JobFilter,
    JobIn,
    JobPage,
    RequestedOut,
    RunAgainIn,
    WaitParams,
)
from tailrace.web.api.jobs.showing import VERSION_COLUMNS, details, shown, version
from tailrace.web.api.problems import Problem, busy, find_row, of_faults, wrong_parameter
from tailrace.web.api.requests.waiting import waiting

router = Router()
READ = Needs("jobs:read", "tailrace_jobs.view_job")
WRITE = Needs("jobs:write")
RUN_AGAIN = Needs("jobs:write", "tailrace_jobs.view_job", VIEW_JOB_PAYLOAD)


@router.post(
    "", auth=WRITE, response={200: RequestedOut, 201: RequestedOut}, summary="Request a job"
)
def create_job(
    request: HttpRequest,
    response: HttpResponse,
    body: Body[JobIn],
    idempotency_key: KeyHeader = None,
) -> Status[RequestedOut]:
    """Needs the `request_permission` of the handler; a handler without one accepts no requests.

    Returns 201 with a new job. Returns 200 with an existing job: the job of the same
    `Idempotency-Key`, or an unstarted job with the same `unique_key`, into which the request was
    merged. Returns 409 while another request with the `Idempotency-Key` is being processed, and 422
    if the key was sent with another request.
    """
    job_request = JobRequest(**body.model_dump() | {"lane": body.lane or ""})
    return _create(request, response, job_request, idempotency_key)


@router.post(
    "/{int:id}/run-again",
    auth=RUN_AGAIN,
    response={200: RequestedOut, 201: RequestedOut},
    summary="Run a job again",
)
def run_again(
    request: HttpRequest,
    response: HttpResponse,
    id: int,
    body: Body[RunAgainIn],
    idempotency_key: KeyHeader = None,
) -> Status[RequestedOut]:
    """Create a new job with the payload of this job, or another payload. This job is unchanged.

    Needs the `request_permission` of the handler, or `tailrace_jobs.change_job_payload`, which
    allows this for all handlers that take a payload. Jobs of events cannot be run again: replay
    them.
    """
    job = find_row(Job.objects.all(), id, "job")
    fields = body.model_dump() | {"handler": job.handler, "lane": lane_of_copy(job)}
    fields["copy_of"] = id
    if body.payload is None:
        fields["payload"] = job.payload
    if body.priority is None:
        fields["priority"] = job.priority
    return _create(request, response, JobRequest(**fields), idempotency_key)


def _create(
    request: HttpRequest,
    response: HttpResponse,
    job_request: JobRequest,
    idempotency_key: str | None,
) -> Status[RequestedOut]:
    requested = _request_job(caller(request).user, job_request, idempotency_key or "")
    state = Job.objects.filter(pk=requested.id).values_list("state", flat=True).first()
    if state is None:
        raise Problem(410, f"job {requested.id} of this Idempotency-Key was deleted")
    response["Location"] = f"/api/jobs/{requested.id}"
    return Status(
        201 if requested.is_new else 200,
        RequestedOut(
            id=requested.id, handler=job_request.handler, state=state, is_new=requested.is_new
        ),
    )


def _request_job(user: User, job_request: JobRequest, key: str) -> Requested:
    try:
        with key_problems():
            return request_job(user, job_request, key)
    except errors.InvalidRequest as error:
        raise of_faults([in_body(fault.detail, *fault.path) for fault in error.faults]) from None
    except errors.NotPermitted as error:
        kind = "handler-closed" if error.permission is None else "permission-missing"
        raise Problem(403, str(error), kind=kind) from None
    except Blocked as error:
        raise busy(error, seconds=2) from None


@router.get("", auth=READ, response=JobPage, summary="List jobs")
def list_jobs(request: HttpRequest, query: Query[JobFilter]) -> JobPage:
    """Newest first. Fields that you may not see are masked, as in the admin. A search does not
    match masked fields."""
    user = caller(request).user
    filters = Filters.of(query, _search(user, query.search))
    rows, end = window(filters, below(query.cursor))
    jobs = list(rows[: query.limit + 1])
    if len(jobs) > query.limit:
        jobs = jobs[: query.limit]
        end = jobs[-1].pk
    if filters.reveals_hidden():
        hidden = hidden_jobs(user, jobs)
        jobs = [job for job in jobs if job.pk not in hidden]
    left_out = filters.search.left_out if filters.search else ""
    return JobPage(items=shown(user, jobs), next=cursor_of(end), left_out=left_out)


def _search(user: User, text: str | None) -> SearchResult | None:
    if not (text or "").strip():
        return None
    try:
        return search(user, text or "", Job.objects.all())
    except InvalidSearch as error:
        raise wrong_parameter("search", str(error)) from None


@router.get("/{int:id}", auth=READ, response=JobDetails, summary="Get a job, or wait for it")
def get_job(request: HttpRequest, id: int, params: Query[WaitParams]) -> JobDetails:
    """With `wait`, the response comes when the job is finished, when its `version` differs from
    `after`, or after `wait` seconds.

    Only a few requests may wait at a time, in total and for each user. Further requests are
    answered at once.
    """
    user = caller(request).user
    job = find_row(Job.objects.all(), id, "job")
    if params.wait and not _is_over(job, params.after):
        with waiting.place(user.pk) as may_wait:
            if may_wait:
                _wait(id, params)
        job = find_row(Job.objects.all(), id, "job")
    return details(user, job)


def _wait(id: int, params: WaitParams) -> None:
    columns = Job.objects.filter(pk=id).only(*VERSION_COLUMNS)
    for _ in poll_times(params.wait):
        job = columns.first()
        if job is None or _is_over(job, params.after):
            return


def _is_over(job: Job, after: str | None) -> bool:
    return job.state in FINISHED or (after is not None and version(job) != after)
