"""Queues: each handler has a queue, its due jobs are claimed, and the tick wakes it."""

from collections.abc import Sequence
from typing import ClassVar

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming.claim_sql import OPEN, PENDING, PRIORITIES
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import OLD, handler_names
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.engine.waking.activity import newest, same
from tailrace.jobs.models import Queue
from tailrace.jobs.platform.inspection.queues.unserved import unserved
from tailrace.jobs.runtime.invariant import Invariant


class HandlerHasQueue(Invariant):
    """Each handler has a row in the table of queues."""

    name = "queues.missing"
    every = None
    advice = "the row is created, as by `migrate`"

    def find(self) -> list[str]:
        present = set(Queue.objects.values_list("name", flat=True))
        return [name for name in registry.all_handlers() if name not in present]

    def repair(self, violations: Sequence[str]) -> int:
        sync_declared.add_queues()
        return len(violations)


_QUEUES = f"tailrace_jobs_queue q LEFT JOIN LATERAL {newest('q.name')} a ON true"


class _QueueInvariant(Invariant):
    """A condition on queue rows `q` and their activity `a`; violations are queue names."""

    every: ClassVar[float | None] = None
    condition = ""

    def find(self) -> list[str]:
        sql = f"SELECT q.name FROM {_QUEUES} WHERE {self.condition} ORDER BY q.name"
        return [name for (name,) in query(sql, **handler_names())]


class TokensAreValid(_QueueInvariant):
    """The tokens of a queue's rate limit are not negative, and their time is not in the future."""

    name = "queues.tokens"
    condition = f"(a.tokens < 0 OR a.tokens_at > {clock.NOW} + interval '1 minute')"
    advice = "the tokens are set to 0 and refill from now on; otherwise no job of the queue starts"

    def repair(self, violations: Sequence[str]) -> int:
        refilled = query(
            f"""WITH broken AS MATERIALIZED (
                  SELECT q.name, a.slice FROM {_QUEUES}
                  WHERE q.name = ANY(%(names)s) AND {self.condition}),
                free AS MATERIALIZED (
                  SELECT broken.* FROM broken
                    JOIN tailrace_jobs_queueactivity a ON {same("a", "broken")}
                  ORDER BY a.name FOR NO KEY UPDATE OF a SKIP LOCKED)
                UPDATE tailrace_jobs_queueactivity a SET tokens = 0, tokens_at = {clock.NOW}
                FROM free WHERE {same("a", "free")} RETURNING a.name""",
            names=list(violations),
        )
        return len(refilled)


def _due_since(seconds: int) -> str:
    """Return an SQL condition: a pending job of queue `q` has been due for longer than this."""
    return f"""EXISTS (SELECT 1 FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
      SELECT 1 FROM tailrace_jobs_job WHERE handler = q.name AND {PENDING} AND priority = p.priority
        AND due_at < {clock.NOW} - interval '{seconds} seconds'
      ORDER BY due_at, id LIMIT 1) late)"""


class DueQueueIsWoken(_QueueInvariant):
    """A queue with due jobs gets a message, and another one if no drain begins."""

    name = "queues.asleep"
    every = 15
    # The tick wakes a queue within a second. If no drain begins, it sends another message within a
    # minute.
    condition = f"""q.retired_at IS NULL AND {OPEN}
      AND greatest(a.awake_at, a.drained_at, '-infinity')
        < {clock.NOW} - CASE WHEN a.awake THEN interval '90 seconds' ELSE interval '30 seconds' END
      AND {_due_since(30)}"""
    advice = (
        "the queue is woken; find out why the tick did not wake it, or which session locks its row"
    )

    def repair(self, violations: Sequence[str]) -> int:
        return len(tick.wake_due())


class DueQueueIsServed(Invariant):
    """A queue with jobs that have been due for five minutes makes progress."""

    name = "queues.unserved"
    every = None
    advice = (
        "/healthz and the overview show the reason; `manage.py explain JOB` shows where the wake-up"
        " is"
    )

    def find(self) -> list[str]:
        names = [queue.name for queue in unserved(patience=300)]
        active = Queue.objects.filter(name__in=names, retired_at=None)
        return sorted(active.values_list("name", flat=True))


class RetiredQueueIsEmpty(_QueueInvariant):
    """A retired queue whose handler exists in this code has no jobs due for five minutes."""

    name = "queues.retired_with_work"
    condition = f"""q.retired_at < {OLD} AND split_part(q.name, '@', 1) = ANY(%(known)s) AND {OPEN}
      AND {_due_since(300)}"""
    advice = "the tick does not wake this queue: run `manage.py migrate` with the current code"
