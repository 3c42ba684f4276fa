"""The log of a job."""

from django.http import HttpRequest
from ninja import Query, Router

from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.details.job_log import claims_with_log, log_of
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB_PAYLOAD, hidden_jobs
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.jobs.schemas import LogOut, LogParams
from tailrace.web.api.problems import Problem, find_row

router = Router()
READ = Needs("jobs:read", "tailrace_jobs.view_job", VIEW_JOB_PAYLOAD)


@router.get("/{int:id}/log", auth=READ, response=LogOut, summary="Get the log of a job")
def get_log(request: HttpRequest, id: int, params: Query[LogParams]) -> LogOut:
    """The lines that the handler logged with `job.log` in one claim, up to 200. To follow the log,
    send the number of the last line as `after`."""
    job = find_row(Job.objects.defer("payload", "result"), id, "job")
    if hidden_jobs(caller(request).user, [job]):
        raise Problem(403, f"job {id} is about an event or object that you may not see")
    claims = claims_with_log(id)
    claim_no = params.claim_no or next(iter(claims), None)
    lines = log_of(id, claim_no, params.after).lines if claim_no else []
    return LogOut.model_validate({"claim_no": claim_no, "lines": lines, "claims": claims})
