"""Cancel, retry, replay or reschedule one job, as operators do in the admin."""

from django.http import HttpRequest
from ninja import Body, Router

from tailrace.jobs.enqueue import Blocked
from tailrace.jobs.models import Job
from tailrace.jobs.operations import batches
from tailrace.jobs.operations.reschedule import reschedule
from tailrace.jobs.platform.requests.job_request import wrong_time
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.jobs.schemas import OperatedOut, RescheduleIn
from tailrace.web.api.problems import Problem, busy, find_row, wrong_field

router = Router()
OPERATE = Needs("jobs:operate", "tailrace_jobs.view_job", batches.PERMISSION)


@router.post("/{int:id}/cancel", auth=OPERATE, response=OperatedOut, summary="Cancel a job")
def cancel_job(request: HttpRequest, id: int) -> OperatedOut:
    """An unstarted job is cancelled at once. A running job stops the next time its handler checks
    for cancellation."""
    return _operate(request, id, "cancel")


@router.post("/{int:id}/retry", auth=OPERATE, response=OperatedOut, summary="Retry a job now")
def retry_job(request: HttpRequest, id: int) -> OperatedOut:
    """Make a pending job due now."""
    return _operate(request, id, "retry")


@router.post("/{int:id}/replay", auth=OPERATE, response=OperatedOut, summary="Replay a job")
def replay_job(request: HttpRequest, id: int) -> OperatedOut:
    """Queue a failed, cancelled or skipped job again, with all of its attempts."""
    return _operate(request, id, "replay")


@router.post("/{int:id}/reschedule", auth=OPERATE, response=OperatedOut, summary="Reschedule a job")
def reschedule_job(request: HttpRequest, id: int, body: Body[RescheduleIn]) -> OperatedOut:
    """Change the due time and the priority of a pending job."""
    find_row(Job.objects.only("pk"), id, "job")
    if body.due_at is not None and (wrong := wrong_time(body.due_at)):
        raise wrong_field("due_at", wrong)
    try:
        changed = reschedule(caller(request).user, id, body.due_at, body.priority)
    except Blocked as error:
        raise busy(error, seconds=2) from None
    state = find_row(Job.objects.only("pk", "state"), id, "job").state
    if not changed:
        raise Problem(409, f"job {id} was not changed: it is {state}")
    return OperatedOut(id=id, state=state, stop_requested=False)


def _operate(request: HttpRequest, id: int, action: str) -> OperatedOut:
    find_row(Job.objects.only("pk"), id, "job")
    user = caller(request).user
    summary = batches.apply(user, batches.JOB_ACTIONS[action], Job.objects.filter(pk=id))
    if summary.refused:
        raise Problem(409, f"job {id} was not changed: {'; '.join(summary.refused)}")
    job = find_row(Job.objects.only("pk", "state"), id, "job")
    return OperatedOut(id=id, state=job.state, stop_requested=bool(summary.stop_requested))
