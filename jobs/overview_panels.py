"""The core's panels of the overview: queues, workers, failed jobs, flagged events."""

from typing import Any

from django.db import connection

from events.models import Event
from jobs import numbers
from jobs.models import Job
from jobs.panels import Panel

LATEST = 8
CAP = 10_000
BEAT_LATE_SECONDS = 15


class Queues(Panel):
    """How each queue stands, and what it did in the last hour."""

    title = "Queues"
    order = 10
    template = "jobs/panels/queues.html"
    wide = True

    def context(self) -> dict[str, Any]:
        lines = numbers.sparklines()
        rows = [(queue, lines.get(queue.name, [])) for queue in numbers.queues(CAP)]
        return {"rows": [_queue(queue, line) for queue, line in rows]}


def _queue(queue: numbers.QueueNumbers, line: list[int]) -> dict[str, Any]:
    return {
        "queue": queue,
        "line": sparkline(line),
        "hour": sum(line),
        "peak": max(line, default=0),
        "state": _state(queue),
    }


def _state(queue: numbers.QueueNumbers) -> str:
    if queue.retired:
        return "retired"
    if queue.paused:
        return "paused"
    return "working" if queue.running else "awake" if queue.awake else "asleep"


def sparkline(values: list[int], width: int = 120, height: int = 24) -> str:
    """Return the points of an SVG polyline for these values; empty if all of them are 0."""
    peak = max(values, default=0)
    if not peak:
        return ""
    step = width / max(len(values) - 1, 1)
    points = ((i * step, height - 1 - (height - 2) * v / peak) for i, v in enumerate(values))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


class Workers(Panel):
    """Who works, whether beat ticks, and which queues nobody serves."""

    title = "Workers and beat"
    order = 30
    template = "jobs/panels/workers.html"

    def context(self) -> dict[str, Any]:
        age = numbers.beat_age()
        return {
            "workers": numbers.workers(),
            "beat_age": age,
            "beat_late": age is None or age > BEAT_LATE_SECONDS,
            "unserved": numbers.unserved(),
        }


# One index walk per queue, so that it costs the same however many have failed.
_FAILED = """
SELECT j.* FROM jobs_queue q CROSS JOIN LATERAL (
  SELECT id, handler, routing_key, attempt, error, finished_at FROM jobs_job
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
    """The dead letters: how many per queue, and the latest."""

    title = "Failed jobs"
    order = 40
    template = "jobs/panels/failed.html"
    permission = "jobs.view_job"

    def context(self) -> dict[str, Any]:
        with connection.cursor() as cursor:
            cursor.execute(_FAILED_COUNTS, {"cap": CAP})
            counts = cursor.fetchall()
        return {"jobs": list(Job.objects.raw(_FAILED, {"limit": LATEST})), "counts": counts}


class Flagged(Panel):
    """Events that are quarantined or odd, until an operator acknowledges them."""

    title = "Quarantined and flagged events"
    order = 50
    template = "jobs/panels/flagged.html"
    permission = "events.view_event"

    def context(self) -> dict[str, Any]:
        found = Event.objects.flagged().order_by("-id").defer("payload")[: LATEST + 1]
        events = list(found)
        return {"events": events[:LATEST], "more": len(events) > LATEST}
