"""The page of a queue: its charts, its running jobs and its last failures."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from tailrace.db.query import database_now
from tailrace.environment.conf import conf
from tailrace.jobs.engine import registry
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.inspection.display.formatting import duration, share
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.queues.queue_history import WINDOWS, History, history
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB, mask_jobs, require, user_of
from tailrace.jobs.platform.pages.charts import charts

MAX_RUNNING = 50
MAX_FAILED = 10


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A running job; `share` is its progress in per cent, or the used part of its time limit."""

    job: Job
    seconds: float
    share: int
    is_progress: bool


def page_of(request: HttpRequest, name: str) -> dict[str, Any]:
    """Return the template context of a queue's page, masked for the user."""
    window = WINDOWS.get(request.GET.get("window", ""), WINDOWS["1h"])
    shown = history(name, window)
    return {
        "windows": list(WINDOWS.values()),
        "window": window,
        "charts": charts(shown),
        "utilisation": _utilisation(shown, name),
        "sees_jobs": request.user.has_perm(VIEW_JOB),
        "failed_jobs": _failed_jobs(request, name),
    } | running_part(request, name)


def running_view(request: HttpRequest, queue: str) -> HttpResponse:
    """Return the running jobs of a queue; 204 if they have not changed."""
    require(request, VIEW_JOB)
    get_object_or_404(Queue, name=queue)
    part = running_part(request, queue)
    if request.GET.get("version") == part["version"]:
        return HttpResponse(status=204)
    return render(request, "tailrace/jobs/admin/queue/running.html", part)


def running_part(request: HttpRequest, name: str) -> dict[str, Any]:
    """Return the running jobs, longest first, and a `version` that changes with them."""
    if not request.user.has_perm(VIEW_JOB):
        return {}
    rows = Job.objects.running().filter(handler=name).defer("payload", "result")
    jobs = list(rows.order_by("started_at", "pk")[: MAX_RUNNING + 1])
    mask_jobs(user_of(request), jobs)
    now = database_now()
    running = [_running(job, now) for job in jobs[:MAX_RUNNING]]
    facts = [
        (r.job.pk, r.job.claim_no, r.share, r.job.progress_note, int(r.seconds // 60))
        for r in running
    ]
    return {
        "queue_name": name,
        "running_jobs": running,
        "more_running": len(jobs) > MAX_RUNNING,
        "version": hashlib.sha256(repr(facts).encode()).hexdigest()[:16],
    }


def _running(job: Job, now: datetime) -> RunningJob:
    seconds = max((now - (job.started_at or now)).total_seconds(), 0.0)
    if (share := rendering.progress(job)) is not None:
        return RunningJob(job, seconds, share, is_progress=True)
    handler = registry.find(job.handler)
    is_async = handler is not None and handler.is_async()
    default = conf.JOBS_ASYNC_TIME_LIMIT if is_async else conf.JOBS_TIME_LIMIT
    limit = (handler and handler.time_limit) or default
    return RunningJob(job, seconds, int(min(100 * seconds / limit, 100)), is_progress=False)


def _failed_jobs(request: HttpRequest, name: str) -> list[Job]:
    if not request.user.has_perm(VIEW_JOB):
        return []
    rows = Job.objects.failed().filter(handler=name).defer("payload", "result")
    jobs = list(rows.order_by("-pk")[:MAX_FAILED])
    mask_jobs(user_of(request), jobs)
    return jobs


def _utilisation(shown: History, queue: str) -> str:
    """Return how many processes the queue kept busy on average, of the processes for its jobs."""
    busy = duration(shown.total.busy_ms / 1000)
    processes = _capacity(queue)
    of = f" of {processes:,}" if processes else ""
    part = f"{share(min(shown.busy / processes, 1.0))}: " if processes else ""
    noun = "process" if processes == 1 else "processes"
    return f"{part}{shown.busy:.2f}{of} worker {noun} busy on average, {busy} in total"


def _capacity(queue: str) -> int:
    """Return how many jobs of the queue may run at once; 0 if unknown or without a worker."""
    processes = sum(worker.concurrency for worker in stats.workers() if queue in worker.queues)
    handler = registry.find(queue)
    row = Queue.objects.filter(name=queue).only("max_running").first()
    max_running = (row and row.max_running) or (handler and handler.max_running)
    return min(processes, max_running) if max_running else processes
