"""The panels of queues, workers, failed jobs and flagged events."""

from typing import Any

from tailrace.db.query import query
from tailrace.events.models import Event
from tailrace.jobs.models import FailureGroup, Job
from tailrace.jobs.platform.inspection.details.failures import readable
from tailrace.jobs.platform.inspection.queue_states import IDLE, MEANINGS, queue_states
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.queues.pools import pools
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB, mask_events, mask_jobs
from tailrace.jobs.platform.pages.charts import sparkline
from tailrace.jobs.platform.pages.panel import MAX_COUNTED, Panel

MAX_LATEST = 8
MAX_FLAGGED = 5
BUSIEST = 12
"""The number of busy queues that are shown even if they are idle now."""
MAX_ROWS = 25
"""The number of busy queues that are shown with all their numbers; the others are a short list."""
MAX_KINDS = 6
NEWEST_KINDS = 100
"""The newest kinds of failures of which those with failed jobs are shown."""
MAX_WORKERS = 20


class Queues(Panel):
    """The state of each queue and its completed jobs of the last hour, the busiest queue first.
    Idle queues are folded, except the busiest ones."""

    title = "Queues"
    order = 10
    template = "tailrace/jobs/panels/queues.html"
    wide = True

    def context(self) -> dict[str, Any]:
        completed = stats.completed_per_minute()
        queues = self.shared.queues
        states = queue_states(queues)
        rows = [_row(queue, states[queue.name], completed.get(queue.name, [])) for queue in queues]
        rows.sort(key=lambda row: (-row["work"], row["queue"].name))
        shown = 0
        for number, row in enumerate(rows):
            is_busy = number < BUSIEST and row["work"] > 0
            row["is_shown"] = shown < MAX_ROWS and (row["is_active"] or is_busy)
            shown += row["is_shown"]
        return {
            "rows": [row for row in rows if row["is_shown"]],
            "quiet": [row for row in rows if not row["is_shown"]],
            "all_idle": all(row["is_shown"] or not row["is_active"] for row in rows),
        }


def _row(queue: stats.QueueStats, state: str, completed: list[int]) -> dict[str, Any]:
    return {
        "queue": queue,
        "line": sparkline(completed),
        "hour": sum(completed),
        "work": sum(completed) + queue.running + queue.due,
        "peak": max(completed, default=0),
        "state": state,
        "meaning": MEANINGS[state],
        "is_active": state != IDLE or queue.failed > 0 or queue.running > 0,
    }


class Workers(Panel):
    """The workers with their running jobs, and the process that ticks."""

    title = "Workers and upkeep"
    order = 12
    template = "tailrace/jobs/panels/workers.html"

    def context(self) -> dict[str, Any]:
        workers, _others = pools()
        workers.sort(key=lambda pool: not pool.worker.silent)
        return {
            "pools": workers[:MAX_WORKERS],
            "more": len(workers) - MAX_WORKERS,
            "tick": stats.last_tick(),
        }


# One index range per queue, so that the cost does not depend on the number of failed jobs.
_FAILED = """
SELECT j.* FROM tailrace_jobs_queue q CROSS JOIN LATERAL (
  SELECT id, handler, event_id, routing_key, lane, unique_key, flow_name, attempt, error,
    finished_at
  FROM tailrace_jobs_live
  WHERE handler = q.name AND state = 'failed' ORDER BY id DESC LIMIT %(limit)s
) j ORDER BY j.id DESC LIMIT %(limit)s
"""

# The newest kinds, then one index range per kind.
_KINDS = """
SELECT * FROM (
  SELECT g.id, (SELECT count(*) FROM (SELECT 1 FROM tailrace_jobs_live
    WHERE failure_group_id = g.id AND state = 'failed' LIMIT %(cap)s) capped) AS failed
  FROM (SELECT id, last_seen_at FROM tailrace_jobs_failuregroup
        ORDER BY last_seen_at DESC LIMIT %(newest)s) g ORDER BY g.last_seen_at DESC
) kind WHERE failed > 0 LIMIT %(limit)s
"""


class Failed(Panel):
    """The newest kinds of failures with failed jobs, the number of failed jobs by queue, and the
    latest failed jobs."""

    title = "Failed jobs"
    order = 14
    template = "tailrace/jobs/panels/failed.html"
    permission = VIEW_JOB

    def context(self) -> dict[str, Any]:
        jobs = list(Job.objects.raw(_FAILED, {"limit": MAX_LATEST}))
        mask_jobs(self.user, jobs)
        counts = [(queue.name, queue.failed) for queue in self.shared.queues if queue.failed]
        counts.sort(key=lambda count: (-count[1], count[0]))
        return {"alert": bool(jobs), "jobs": jobs, "counts": counts, "kinds": self._kinds()}

    def _kinds(self) -> list[FailureGroup]:
        """Return the newest kinds with failed jobs, with `failed`, without messages that the user
        may not read."""
        failed = dict(query(_KINDS, cap=MAX_COUNTED, newest=NEWEST_KINDS, limit=MAX_KINDS))
        kinds: list[Any] = list(
            FailureGroup.objects.filter(pk__in=failed).order_by("-last_seen_at")
        )
        may_read = readable(self.user, kinds)
        for kind in kinds:
            kind.failed = failed[kind.pk]
            if kind.pk not in may_read:
                kind.message = ""
        return kinds


# Without an order, which Django's count of a slice keeps.
_FLAGGED_COUNT = """
SELECT count(*) FROM (SELECT 1 FROM tailrace_events_event
  WHERE problem <> '' AND acknowledged_at IS NULL LIMIT %(cap)s) capped
"""


class Flagged(Panel):
    """Events that are quarantined or flagged, until an operator acknowledges them."""

    title = "Quarantined and flagged events"
    order = 50
    template = "tailrace/jobs/panels/flagged.html"
    permission = "tailrace_events.view_event"

    def context(self) -> dict[str, Any]:
        flagged = Event.objects.flagged().order_by("-id")
        events = list(flagged[:MAX_FLAGGED])
        mask_events(self.user, events)
        [(number,)] = query(_FLAGGED_COUNT, cap=MAX_COUNTED)
        return {
            "alert": bool(events),
            "events": events,
            "number": number,
            "more": number > len(events),
        }
