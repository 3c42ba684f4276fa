"""The log of a job on its page: the lines of one claim, with new lines while the job is live."""

from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from tailrace.db.row_ids import row_id
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection import visibility
from tailrace.jobs.platform.inspection.details.job_log import Log, claims_with_log, log_of
from tailrace.jobs.runtime.states import LIVE

LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ShownLog:
    log: Log
    claims: list[int]
    is_live: bool
    """Whether the handler may still write lines."""
    is_new_claim: bool = False
    shown_before: int = 0
    """The number of the last line that the page already shows."""

    @property
    def last_line(self) -> int:
        return self.log.last or self.shown_before


def shown_log(request: HttpRequest, job: Job) -> ShownLog | None:
    """Return the log of the claim in the query string, or of the newest claim, if there is one or
    may be one soon."""
    claims = claims_with_log(job.pk)
    is_live = job.state in LIVE
    if not claims and not is_live:
        return None
    newest = claims[0] if claims else job.claim_no
    chosen = _number(request, "claim") or newest
    return ShownLog(log_of(job.pk, chosen), claims, is_live and chosen == newest)


def log_view(request: HttpRequest, id: int) -> HttpResponse:
    """Return the lines that the page does not show yet, or all lines of a new claim."""
    visibility.require(request, visibility.VIEW_JOB, visibility.VIEW_JOB_PAYLOAD)
    job = get_object_or_404(Job.objects.defer("payload", "result"), pk=id)
    if visibility.hidden_jobs(visibility.user_of(request), [job]):
        raise PermissionDenied("the job is hidden")
    context = {"log": _new_lines(request, job), "job": job}
    return render(request, "tailrace/jobs/admin/job/log_lines.html", context)


def _new_lines(request: HttpRequest, job: Job) -> ShownLog:
    claim_no, after = _number(request, "claim"), _number(request, "after")
    log = log_of(job.pk, claim_no, after)
    newest = next(iter(claims_with_log(job.pk)), claim_no)
    if not log.lines and newest > claim_no:
        return ShownLog(log_of(job.pk, newest), [], job.state in LIVE, is_new_claim=True)
    return ShownLog(log, [], job.state in LIVE, shown_before=after)


def _number(request: HttpRequest, name: str) -> int:
    return min(row_id(request.GET.get(name, "")) or 0, LARGEST)
