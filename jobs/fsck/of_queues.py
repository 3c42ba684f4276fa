"""Queues: a row per handler, tokens that can be earned, and somebody who drains what is due."""

from collections.abc import Iterator, Sequence
from typing import Any

from events import clock
from jobs import registry, sync
from jobs.claim_sql import DUE, OPEN, PENDING, PRIORITIES
from jobs.fsck.kind import OLD, Kind, Scope, bounded, rows

LATE_SECONDS = 300
"""Due work that no drain has begun on for so long is served by nobody."""


class HandlersHaveQueues(Kind):
    """Each handler has its queue's row: no drain works without."""

    name = "queues.missing"
    repairs = True
    advice = "the row is made, as at migrate"

    def find(self, scope: Scope) -> Iterator[Any]:
        present = {name for (name,) in rows("SELECT name FROM jobs_queue")}
        yield from (name for name in registry.everything() if name not in present)

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        with bounded():
            sync.add()


class _QueueKind(Kind):
    """A condition on the queue rows `q`; their names are the keys."""

    condition = ""

    def find(self, scope: Scope) -> Iterator[Any]:
        found = rows(f"SELECT q.name FROM jobs_queue q WHERE {self.condition} ORDER BY q.name")
        yield from (name for (name,) in found)


class TokensCanBeSpent(_QueueKind):
    """A rate-limited queue owes no tokens, and earned its last ones in the past."""

    name = "queues.tokens"
    condition = f"""q.rate_limit IS NOT NULL
      AND (q.tokens < 0 OR q.tokens_at > {clock.NOW} + interval '1 minute')"""
    repairs = True
    advice = "its bucket is emptied, and fills from now on; as it was, it would stand still"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        rows(
            f"""UPDATE jobs_queue q SET tokens = 0, tokens_at = {clock.NOW}
                WHERE q.name = ANY(%(names)s) AND {self.condition} RETURNING q.name""",
            names=list(keys),
        )


_DUE_LONG = f"""EXISTS (SELECT 1 FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
  SELECT 1 FROM jobs_job WHERE handler = q.name AND {PENDING} AND priority = p.priority AND {DUE}
    AND due_at < {clock.NOW} - interval '{LATE_SECONDS} seconds'
    ORDER BY due_at, id LIMIT 1) late)"""


class DueQueuesAreDrained(_QueueKind):
    """A queue whose work is due for long has been drained since, or runs jobs."""

    name = "queues.unserved"
    condition = f"""q.retired_at IS NULL AND {OPEN}
      AND coalesce(q.drained_at, '-infinity') < {clock.NOW} - interval '{LATE_SECONDS} seconds'
      AND (SELECT 1 FROM jobs_job WHERE state = 'running' AND handler = q.name LIMIT 1) IS NULL
      AND {_DUE_LONG}"""
    advice = "start a worker that listens on it; `manage.py explain JOB` says where the wake-up is"


class RetiredQueuesAreEmpty(_QueueKind):
    """A queue that is retired, though its handler is here, has nothing due for long."""

    name = "queues.retired_with_work"
    condition = f"""q.retired_at < {OLD} AND q.name = ANY(%(known)s) AND {OPEN}
      AND {_DUE_LONG}"""
    advice = "the tick wakes it no more: `manage.py migrate` with the code that is to run"
