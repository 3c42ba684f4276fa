"""The panels of queues, workers, failed jobs and flagged events."""

from typing import Any

from db.query import query
from events.models import Event
from jobs.inspection import stats
from jobs.inspection.unserved import unserved
from jobs.models import Job, Schedule
from jobs.overview.panel import Panel
from jobs.visibility import mask_events, mask_jobs

MAX_LATEST = 8
MAX_COUNTED = 10_000


class Queues(Panel):
    """The state of each queue, and its completed jobs of the last hour."""

    title = "Queues"
    order = 10
    template = "jobs/panels/queues.html"
    wide = True

    def context(self) -> dict[str, Any]:
        completed = stats.completed_per_minute()
        queues = stats.queues(MAX_COUNTED)
        return {"rows": [_row(queue, completed.get(queue.name, [])) for queue in queues]}


def _row(queue: stats.QueueStats, completed: list[int]) -> dict[str, Any]:
    return {
        "queue": queue,
        "line": sparkline(completed),
        "hour": sum(completed),
        "peak": max(completed, default=0),
        "state": _state(queue),
    }


def _state(queue: stats.QueueStats) -> str:
    if queue.retired:
        return "retired"
    if queue.paused:
        return "paused"
    return "working" if queue.running else "awake" if queue.awake else "idle"


def sparkline(values: list[int], width: int = 120, height: int = 24) -> str:
    """Return the points of an SVG polyline for these values; empty if all of them are 0."""
    peak = max(values, default=0)
    if not peak:
        return ""
    step = width / max(len(values) - 1, 1)
    points = ((i * step, height - 1 - (height - 2) * v / peak) for i, v in enumerate(values))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


class Workers(Panel):
    """The workers, the process that ticks, schedules that were retired, and queues whose due jobs
    do not get on."""

    title = "Workers and upkeep"
    order = 30
    template = "jobs/panels/workers.html"

    def context(self) -> dict[str, Any]:
        queues = unserved()
        return {
            "workers": stats.workers(),
            "retired": Schedule.objects.retired().order_by("-retired_at")[:MAX_LATEST],
            "tick": stats.last_tick(),
            "unserved": queues,
            "without_worker": [queue.name for queue in queues if not queue.workers],
        }


# One index range per queue, so that the cost does not depend on how many jobs have failed.
_FAILED = """
SELECT j.* FROM jobs_queue q CROSS JOIN LATERAL (
  SELECT id, handler, event_id, routing_key, lane, unique_key, attempt, error, finished_at
  FROM jobs_job
  WHERE handler = q.name AND state = 'failed' ORDER BY id DESC LIMIT %(limit)s
) j ORDER BY j.id DESC LIMIT %(limit)s
"""
_FAILED_COUNTS = """
SELECT name, failed FROM (
  SELECT q.name, (SELECT count(*) FROM (SELECT 1 FROM jobs_job
    WHERE handler = q.name AND state = 'failed' LIMIT %(cap)s) capped) AS failed
  FROM jobs_queue q
) counted WHERE failed > 0 ORDER BY failed DESC, name
"""


class Failed(Panel):
    """The number of failed jobs by queue, and the latest ones."""

    title = "Failed jobs"
    order = 40
    template = "jobs/panels/failed.html"
    permission = "jobs.view_job"

    def context(self) -> dict[str, Any]:
        jobs = list(Job.objects.raw(_FAILED, {"limit": MAX_LATEST}))
        mask_jobs(self.user, jobs)
        return {"jobs": jobs, "counts": query(_FAILED_COUNTS, cap=MAX_COUNTED)}


class Flagged(Panel):
    """Events that are quarantined or flagged, until an operator acknowledges them."""

    title = "Quarantined and flagged events"
    order = 50
    template = "jobs/panels/flagged.html"
    permission = "events.view_event"

    def context(self) -> dict[str, Any]:
        rows = Event.objects.flagged().order_by("-id")
        events = list(rows[: MAX_LATEST + 1])
        mask_events(self.user, events)
        return {"events": events[:MAX_LATEST], "more": len(events) > MAX_LATEST}
