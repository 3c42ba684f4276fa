"""The figures at the top of the overview, each with a sparkline and a link to the list of the
counted jobs or events."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from tailrace.jobs.engine import registry
from tailrace.jobs.platform.inspection.display.formatting import capped, count, duration, share
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.queues.queue_history import History, Period, percentile
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB
from tailrace.jobs.platform.pages.admin_links import admin_address
from tailrace.jobs.platform.pages.charts import sparkline
from tailrace.jobs.platform.pages.panel import MAX_COUNTED

VIEW_EVENT = "tailrace_events.view_event"
VIEW_FAILURE = "tailrace_jobs.view_failuregroup"
RATE_SECONDS = 300
"""A rate is the mean of at least this time."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit and a detail. `line` has the points of its sparkline, which `text`
    describes. `address` is empty if the user may not open the page."""

    id: str
    title: str
    value: str
    detail: str
    line: str
    text: str
    address: str = ""
    unit: str = ""
    is_bad: bool = False


def figures(
    request: HttpRequest, history: History, queues: Sequence[stats.QueueStats]
) -> list[Figure]:
    """Return the figures that the user may see. `history` is that of all queues together."""
    counted, summed = history.before(history.now), history.before(history.summed_to)
    jobs = _link(request, VIEW_JOB, "tailrace_jobs_job_changelist")
    times = f"{reverse('tailrace:latency')}?window={history.window.name}"
    shown = [
        _rate(history, counted, jobs),
        _time("wait", "Wait, p95", history, [period.wait for period in summed], times),
        _time("run", "Run, p95", history, [period.run for period in summed], times),
        _failed(request, history, counted, queues),
        _running(request, counted, history.window.period, queues),
    ]
    if request.user.has_perm(VIEW_EVENT):
        shown.append(_events(request, history, summed))
    return shown


def _mean(history: History, values: Sequence[int]) -> float:
    """Return the mean per minute of the last values, over RATE_SECONDS or one period."""
    last = values[-max(RATE_SECONDS // history.window.period, 1) :]
    return sum(last) / max(len(last), 1) / (history.window.period / 60)


def _per_minute(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"


def _rate(history: History, periods: Sequence[Period], address: str) -> Figure:
    total, values = history.total, [period.settled for period in periods]
    ended = total.completed + total.failed
    parts = [f"{share(total.completed / ended)} completed"] if ended else ["no job ended"]
    parts += [f"{total.retried:,} retried"] if total.retried else []
    return Figure(
        "rate",
        "Jobs a minute",
        _per_minute(_mean(history, values)),
        " · ".join(parts),
        sparkline(values),
        f"{count(total.settled, 'call')} of handlers ended in the {history.window.title}",
        address,
    )


def _time(
    id: str, title: str, history: History, classes: Sequence[Counter[int]], address: str
) -> Figure:
    total = getattr(history.total, id)
    middle, most = percentile(total, 0.5), percentile(total, 0.95)
    return Figure(
        id,
        title,
        duration(most),
        f"p50 {duration(middle)}" if middle is not None else "no jobs",
        sparkline([percentile(each, 0.95) for each in classes]),
        f"p50 {duration(middle)}, p95 {duration(most)} in the {history.window.title}",
        address,
    )


def _failed(
    request: HttpRequest,
    history: History,
    periods: Sequence[Period],
    queues: Sequence[stats.QueueStats],
) -> Figure:
    failed = sum(queue.failed for queue in queues)
    text = f"{history.total.failed:,} in the {history.window.title}"
    groups = _link(request, VIEW_FAILURE, "tailrace_jobs_failuregroup_changelist", "jobs=failed")
    return Figure(
        "failed",
        "Failed jobs",
        capped(failed, MAX_COUNTED),
        text,
        sparkline([period.failed for period in periods]),
        f"jobs that failed: {text}",
        groups or _link(request, VIEW_JOB, "tailrace_jobs_job_changelist", "state=failed"),
        is_bad=bool(failed),
    )


def _running(
    request: HttpRequest,
    periods: Sequence[Period],
    length: int,
    queues: Sequence[stats.QueueStats],
) -> Figure:
    """Jobs of async handlers need no process of their own, so they are counted apart."""
    running = {queue.name: queue.running for queue in queues if queue.running}
    asynchronous = sum(number for name, number in running.items() if _is_async(name))
    processes = sum(worker.concurrency for worker in stats.workers())
    busy = [period.busy_ms / 1000 / length for period in periods]
    most = f"at most {max(busy, default=0.0):.1f} worker processes busy"
    return Figure(
        "running",
        "Running jobs",
        f"{sum(running.values()) - asynchronous:,}",
        f"and {asynchronous:,} of async handlers" if asynchronous else most,
        sparkline(busy),
        most,
        _link(request, VIEW_JOB, "tailrace_jobs_job_changelist", "state=running"),
        unit=f"of {processes:,}",
    )


def _is_async(name: str) -> bool:
    handler = registry.find(name)
    return handler is not None and handler.is_async()


def _events(request: HttpRequest, history: History, periods: Sequence[Period]) -> Figure:
    values = [period.events for period in periods]
    text = f"{history.total.events:,} in the {history.window.title}"
    return Figure(
        "events",
        "Events a minute",
        _per_minute(_mean(history, values)),
        text,
        sparkline(values),
        f"events: {text}",
        _link(request, VIEW_EVENT, "tailrace_events_event_changelist"),
    )


def _link(request: HttpRequest, permission: str, view: str, query: str = "") -> str:
    """Return the address of the admin's page, if the user may open it and there is one."""
    address = admin_address(view) if request.user.has_perm(permission) else ""
    return f"{address}?{query}" if address and query else address
