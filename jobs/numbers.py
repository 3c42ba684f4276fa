"""numbers: how queues and tables stand, at a cost that does not grow with the history."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from events import clock
from jobs.claim_sql import PRIORITIES

EXACT_BELOW = 50_000
"""Rows up to which a table is counted rather than estimated."""


@dataclass(frozen=True, slots=True)
class QueueNumbers:
    """A queue as it stands. Counts stop at `cap`."""

    name: str
    pending: int
    due: int
    running: int
    failed: int
    oldest_due: datetime | None
    paused: bool
    awake: bool
    awake_at: datetime | None
    drained_at: datetime | None
    max_running: int | None
    rate_limit: float | None
    retired: bool

    @property
    def oldest_due_seconds(self) -> float | None:
        """How long its oldest due job has been waiting."""
        return None if self.oldest_due is None else (clock.now() - self.oldest_due).total_seconds()


def _capped(where: str) -> str:
    return f"(SELECT count(*) FROM (SELECT 1 FROM jobs_job WHERE {where} LIMIT %(cap)s) capped)"


_QUEUES = f"""
SELECT q.name,
  {_capped("handler = q.name AND state = 'pending'")},
  {_capped(f"handler = q.name AND state = 'pending' AND due_at <= {clock.NOW}")},
  coalesce(r.running, 0),
  {_capped("handler = q.name AND state = 'failed'")},
  (SELECT min(first.due_at) FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
     SELECT due_at FROM jobs_job WHERE handler = q.name AND state = 'pending'
       AND priority = p.priority AND due_at <= {clock.NOW} ORDER BY due_at LIMIT 1) first),
  q.paused_at IS NOT NULL, q.awake, q.awake_at, q.drained_at, q.max_running, q.rate_limit,
  q.retired_at IS NOT NULL
FROM jobs_queue q LEFT JOIN (
  SELECT handler, count(*) AS running FROM jobs_job WHERE state = 'running' GROUP BY handler
) r ON r.handler = q.name
WHERE q.retired_at IS NULL
  -- scalar, and a state each: an EXISTS of both would be hashed from the whole table
  OR (SELECT 1 FROM jobs_job WHERE handler = q.name AND state = 'pending'
    ORDER BY priority, due_at LIMIT 1) IS NOT NULL
  OR (SELECT 1 FROM jobs_job WHERE handler = q.name AND state = 'failed' LIMIT 1) IS NOT NULL
ORDER BY q.name
"""


def queues(cap: int = 10_000) -> list[QueueNumbers]:
    """Return the numbers of all queues; a count that reaches `cap` means at least that many."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUES, clock.params() | {"cap": cap})
        return [QueueNumbers(*row) for row in cursor.fetchall()]


def totals(cap: int = 100_000) -> dict[str, int]:
    """Return the jobs by state: live and failed ones counted (up to `cap`), the completed ones
    estimated by what is left of the table once it is large."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT "
            + ", ".join(
                _capped(f"state = '{state}'") for state in ("pending", "running", "failed")
            ),
            {"cap": cap},
        )
        pending, running, failed = cursor.fetchone()
        rows = estimate("jobs_job")
        if rows < EXACT_BELOW:
            cursor.execute("SELECT count(*) FROM jobs_job WHERE state = 'completed'")
            completed = cursor.fetchone()[0]
        else:
            completed = max(rows - pending - running - failed, 0)
    return {"pending": pending, "running": running, "completed": completed, "failed": failed}


def estimate(table: str) -> int:
    """Return the table's number of rows: counted while it is small, else the planner's estimate."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [table])
        guess = int(cursor.fetchone()[0])
        if guess >= EXACT_BELOW:
            return guess
        cursor.execute(f'SELECT count(*) FROM (SELECT 1 FROM "{table}" LIMIT {4 * EXACT_BELOW}) t')
        return int(cursor.fetchone()[0])


def sparklines(minutes: int = 60) -> dict[str, list[int]]:
    """Return, per queue, the jobs completed in each of the last `minutes`, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT queue, {minutes} - 1 - floor(extract(epoch FROM
                date_trunc('minute', {clock.NOW}) - minute) / 60)::int, completed
            FROM jobs_throughput
            WHERE minute > date_trunc('minute', {clock.NOW}) - make_interval(mins => {minutes})
            """,
            clock.params(),
        )
        lines: dict[str, list[int]] = {}
        for queue, place, completed in cursor.fetchall():
            line = lines.setdefault(queue, [0] * minutes)
            if 0 <= place < minutes:
                line[place] = completed
    return lines


def beat_age() -> float | None:
    """Return the seconds since the last tick, or None if there never was one."""
    return _age("name = 'tick'")


def workers(within: float = 30) -> list[dict[str, Any]]:
    """Return the workers heard of in the last `within` seconds: name, queues and age."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT substr(name, 8), queues::text::json, extract(epoch FROM {clock.NOW} - at)
                FROM jobs_pulse WHERE name LIKE 'worker:%%'
                AND at > {clock.NOW} - make_interval(secs => %(within)s) ORDER BY name""",
            clock.params() | {"within": within},
        )
        return [
            {"name": name, "queues": queues, "age": float(age)}
            for name, queues, age in cursor.fetchall()
        ]


def _age(where: str) -> float | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT extract(epoch FROM {clock.NOW} - at) FROM jobs_pulse WHERE {where}",
            clock.params(),
        )
        row = cursor.fetchone()
    return None if row is None else max(float(row[0]), 0.0)


def unserved(seconds: float = 30) -> list[str]:
    """Return the queues whose oldest due job has waited for longer than this, though not paused."""
    return [
        queue.name
        for queue in queues(cap=1)
        if not queue.paused and (queue.oldest_due_seconds or 0) > seconds and not queue.running
    ]
