"""The page of the workers, from their heartbeats: a worker that does not answer cannot delay it."""

from collections import Counter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from tailrace.db import clock
from tailrace.jobs.engine.maintenance.workers.code_version import code_version
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.queues.other_code import workers_of_other_code
from tailrace.jobs.platform.inspection.queues.pools import WorkerPool, pools
from tailrace.jobs.platform.inspection.verdict.cause import worker_command
from tailrace.jobs.platform.pages.access import for_staff
from tailrace.jobs.platform.pages.charts import sparkline

MAX_WORKERS = 100
MAX_JOBS_OF_PROCESS = 10
MAX_OTHERS = 50


@require_GET
@for_staff
def workers(request: HttpRequest, template: str) -> HttpResponse:
    """Show the live workers and the silent ones of the last hour, as a page or as the part of it
    that changes."""
    all_pools, others = pools()
    code = code_version()
    names = Counter(pool.worker.name for pool in all_pools)
    shown = all_pools[:MAX_WORKERS]
    newer = [worker.pulse for worker in workers_of_other_code((p.worker for p in shown), code)]
    context = {
        "pools": [
            {"worker": pool.worker, "busy": pool.busy, "full": pool.full, "jobs": pool.jobs}
            | {"rows": _rows(pool), "memory": _memory(pool.worker)}
            for pool in shown
        ],
        "others": others[:MAX_OTHERS],
        "same_name": [name for name, count in names.items() if count > 1],
        "newer": newer,
        "code": code,
        "worker_command": worker_command(pool.worker for pool in all_pools),
        "at": clock.now(),
    }
    return render(request, template, context)


def _memory(worker: stats.Worker) -> dict[str, Any]:
    """Return the sparkline of a worker's memory, with a text for screen readers; nothing in its
    first minute."""
    minutes = worker.memory_minutes
    if len(minutes) < 2:
        return {}
    text = f"at most {max(minutes):,} MB in the last {len(minutes)} min"
    return {"line": sparkline(minutes), "text": text}


def _rows(pool: WorkerPool) -> list[dict[str, Any]]:
    rows = []
    for process in pool.worker.processes:
        own = [job for job in pool.jobs if job.process[1] == process["pid"]]
        own.sort(key=lambda job: not job.begun)
        more = max(len(own) - MAX_JOBS_OF_PROCESS, 0)
        rows.append({**process, "jobs": own[:MAX_JOBS_OF_PROCESS], "more": more})
    return rows
