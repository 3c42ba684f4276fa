"""Circuit breakers of destinations, shared by all workers.

closed: everything is sent. A breaker opens at once when its destination cannot be reached, and
after ERRORS_TO_OPEN errors in a row when it answers with errors. open: nothing is sent. half-open:
the time is over, and one worker may send one message, the probe. The worker that first moves
`open_until` on has the probe.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailrace.db import clock, connections
from tailrace.db.query import query

ERRORS_TO_OPEN = 5
SHORTEST_SECONDS, LONGEST_SECONDS = 5.0, 300.0
"""How long a breaker stays open: doubled by each failure, up to the longest."""
PROBE_SECONDS = 30.0
"""How long the worker with the probe has before another may try."""


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What may be sent: everything, one probe, or nothing for `wait` seconds."""

    wait: float = 0.0
    probe: bool = False
    failures: int = 0


def _query(statement: str, **params: Any) -> list[Any]:
    """Execute it on the engine's connection, which waits for no row for long; what a handler rolls
    back has happened at its destination all the same."""
    with connections.engine():
        return query(statement, **params)


_STATES = f"""
SELECT name, failures, extract(epoch FROM open_until - {clock.NOW})::float8
FROM tailrace_jobs_breaker
WHERE name = ANY(%(names)s)
"""
_TAKE_PROBE = f"""
UPDATE tailrace_jobs_breaker SET open_until = {clock.NOW} + make_interval(secs => %(seconds)s)
WHERE name = %(name)s AND open_until <= {clock.NOW} RETURNING failures
"""


def check(name: str) -> BreakerState:
    """Return what may be sent to the destination now; takes the probe if it is free.

    One read while the breaker is closed.
    """
    return check_all([name])[name]


def check_all(names: Iterable[str]) -> dict[str, BreakerState]:
    """As `check`, for several destinations at once: one read for all of them."""
    states = {name: BreakerState() for name in names}
    for name, failures, wait in _query(_STATES, names=list(states)) if states else []:
        states[name] = _state(name, failures, wait)
    return states


def _state(name: str, failures: int, wait: float | None) -> BreakerState:
    if wait is None:
        return BreakerState(failures=failures)
    if wait > 0:
        return BreakerState(wait=wait, failures=failures)
    probe = _query(_TAKE_PROBE, name=name, seconds=PROBE_SECONDS)
    if probe:
        return BreakerState(probe=True, failures=probe[0][0])
    return BreakerState(wait=PROBE_SECONDS, failures=failures)


# Everything is computed from the row as it is when the statement has locked it, so that failures at
# once are all counted. What was sent before the breaker opened, and fails now, opens it no longer.
_OPENS = f"""CASE WHEN b.open_until IS NULL THEN %(at_once)s OR b.failures + %(count)s >= %(limit)s
       ELSE %(probe)s OR b.open_until <= {clock.NOW} END"""
_OPEN_UNTIL = f"""{clock.NOW} + make_interval(
    secs => least(%(longest)s, %(shortest)s * power(2, least({{opened}}, 20))))"""
_RECORD_FAILURE = f"""
INSERT INTO tailrace_jobs_breaker AS b (name, failures, opened, last_error, failed_at, open_until)
SELECT %(name)s, %(count)s, opens::int, %(error)s, {clock.NOW},
       CASE WHEN opens THEN {_OPEN_UNTIL.format(opened=0)} END
FROM (SELECT %(at_once)s OR %(count)s >= %(limit)s AS opens) first
ON CONFLICT (name) DO UPDATE SET
  failures = b.failures + %(count)s,
  opened = b.opened + ({_OPENS})::int,
  open_until = CASE WHEN {_OPENS} THEN {_OPEN_UNTIL.format(opened="b.opened")}
                    ELSE b.open_until END,
  last_error = excluded.last_error,
  failed_at = excluded.failed_at
RETURNING extract(epoch FROM open_until - {clock.NOW})::float8
"""


def record_failure(
    name: str, error: str, *, at_once: bool, probe: bool = False, count: int = 1
) -> float:
    """Count failures; return for how many seconds the breaker is open now, 0 if it is closed.

    `at_once` opens it after one failure: for a destination that could not be reached at all.
    `probe`: what failed was sent through a half-open breaker, which opens for twice as long as
    the last time.
    """
    [(seconds,)] = _query(
        _RECORD_FAILURE,
        name=name,
        error=error[:500],
        at_once=at_once,
        probe=probe,
        count=count,
        limit=ERRORS_TO_OPEN,
        shortest=SHORTEST_SECONDS,
        longest=LONGEST_SECONDS,
    )
    return float(seconds or 0.0)


_OPEN_FOR = f"""
INSERT INTO tailrace_jobs_breaker AS b (name, failures, opened, last_error, failed_at, open_until)
VALUES (%(name)s, 0, 0, %(error)s, {clock.NOW}, {clock.NOW} + make_interval(secs => %(seconds)s))
ON CONFLICT (name) DO UPDATE SET last_error = excluded.last_error,
  failed_at = excluded.failed_at, open_until = greatest(b.open_until, excluded.open_until)
RETURNING name
"""


def open_for(name: str, error: str, seconds: float) -> None:
    """Keep the breaker open for as long as the destination asked for (Retry-After)."""
    _query(_OPEN_FOR, name=name, error=error[:500], seconds=seconds)


def record_success(name: str) -> None:
    """Close the breaker and reset its failures."""
    _query(_CLOSE, name=name)


_CLOSE = """
UPDATE tailrace_jobs_breaker SET failures = 0, opened = 0, open_until = NULL
WHERE name = %(name)s AND (failures > 0 OR open_until IS NOT NULL) RETURNING name
"""
