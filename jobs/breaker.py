"""Circuit breakers: a destination that is down is left alone for a while, by all workers at once.

closed: all may be sent. A destination that cannot be reached opens its breaker at once, one that
answers with errors after LIMIT of them in a row. Open: nothing is sent. When its time is over, one
worker alone may try one message (half open): the first to push the time on has won the try.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from events import clock
from jobs.models import Breaker

LIMIT = 5
"""Errors in a row that open a breaker."""
SHORTEST, LONGEST = 5.0, 300.0
"""Seconds that a breaker stays open: doubled by each failure, up to the longest."""
TRY = 30.0
"""Seconds that the winner of a try has before another may try."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a breaker lets through: all, one try, or nothing for `wait` seconds."""

    wait: float = 0.0
    one: bool = False
    failures: int = 0


_TRY = f"""
UPDATE jobs_breaker SET open_until = {clock.NOW} + make_interval(secs => %(try)s)
WHERE name = %(name)s AND open_until <= {clock.NOW} RETURNING failures
"""
_LOOK = f"""
SELECT failures, extract(epoch FROM open_until - {clock.NOW})::float8 FROM jobs_breaker
WHERE name = %(name)s
"""


def gate(name: str) -> Gate:
    """Ask whether something may be sent to the destination. One read while all is well."""
    asked: dict[str, Any] = {"name": name} | clock.params()
    with connection.cursor() as cursor:
        cursor.execute(_LOOK, asked)
        found = cursor.fetchone()
        if found is None or found[1] is None:
            return Gate(failures=found[0] if found else 0)
        if found[1] > 0:
            return Gate(wait=found[1], failures=found[0])
        cursor.execute(_TRY, asked | {"try": TRY})
        won = cursor.fetchone()
    return Gate(one=True, failures=won[0]) if won else Gate(wait=TRY, failures=found[0])


# A breaker opens for twice as long as the last time, as long as nothing arrives in between.
_FAILED = f"""
WITH told AS (
  SELECT coalesce(max(b.failures), 0) + %(count)s AS failures, coalesce(max(b.opened), 0) AS opened,
         %(at_once)s OR coalesce(max(b.failures), 0) + %(count)s >= %(limit)s
           OR count(b.open_until) > 0 AS opens
  FROM jobs_breaker b WHERE b.name = %(name)s
)
INSERT INTO jobs_breaker (name, failures, opened, last_error, failed_at, open_until)
SELECT %(name)s, failures, opened + opens::int, %(error)s, {clock.NOW},
       CASE WHEN opens THEN {clock.NOW} + make_interval(
         secs => least(%(longest)s, %(shortest)s * power(2, least(opened, 20)))) END
FROM told
ON CONFLICT (name) DO UPDATE SET failures = excluded.failures, opened = excluded.opened,
  last_error = excluded.last_error, failed_at = excluded.failed_at,
  open_until = excluded.open_until
RETURNING extract(epoch FROM open_until - {clock.NOW})::float8
"""


def failed(name: str, error: str, *, at_once: bool, count: int = 1) -> float:
    """Count failures; return for how many seconds the breaker is open now, 0 if it is closed.

    `at_once`: it could not be reached at all, and each further try may cost a worker its time.
    """
    params: dict[str, Any] = {
        "name": name,
        "error": error[:500],
        "at_once": at_once,
        "count": count,
        "limit": LIMIT,
        "shortest": SHORTEST,
        "longest": LONGEST,
    }
    with connection.cursor() as cursor:
        cursor.execute(_FAILED, params | clock.params())
        return float(cursor.fetchone()[0] or 0.0)


_HOLD = f"""
INSERT INTO jobs_breaker AS b (name, failures, opened, last_error, failed_at, open_until)
VALUES (%(name)s, 0, 0, %(error)s, {clock.NOW}, {clock.NOW} + make_interval(secs => %(seconds)s))
ON CONFLICT (name) DO UPDATE SET last_error = excluded.last_error,
  failed_at = excluded.failed_at, open_until = greatest(b.open_until, excluded.open_until)
"""


def hold(name: str, error: str, seconds: float) -> None:
    """Leave the destination alone for as long as it asked for (Retry-After)."""
    params: dict[str, Any] = {"name": name, "error": error[:500], "seconds": seconds}
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, params | clock.params())


def succeeded(name: str) -> None:
    """Close the breaker, and forget its failures."""
    Breaker.objects.filter(name=name).exclude(failures=0, open_until=None).update(
        failures=0, opened=0, open_until=None
    )
