"""Circuit breakers of destinations, shared by all workers.

closed: all messages are sent. open: no message is sent. half-open: `open_until` has passed, and
one worker may send one message, the probe.

A breaker opens at once if its destination cannot be reached, and after ERRORS_TO_OPEN errors in a
row if the destination answers with errors. The worker that first updates `open_until` sends the
probe.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailrace.db import clock, connections
from tailrace.db.query import query

ERRORS_TO_OPEN = 5
SHORTEST_SECONDS, LONGEST_SECONDS = 5.0, 300.0
"""How long a breaker stays open: twice as long each time it opens, up to the longest."""
PROBE_SECONDS = 30.0
"""How long a worker has for its probe before another worker may send one."""


@dataclass(frozen=True, slots=True)
class BreakerState:
    """Whether messages may be sent: all of them, one `probe`, or none for `wait` seconds."""

    wait: float = 0.0
    probe: bool = False
    failures: int = 0


def _query(statement: str, **params: Any) -> list[Any]:
    """Execute the statement on the engine's connection, which limits the wait for locked rows. A
    rollback of the handler's transaction must not undo it: the message has been sent."""
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
    """Return whether messages may be sent to the destination now. If it is half-open and the probe
    is free, the caller gets the probe."""
    return check_all([name])[name]


def check_all(names: Iterable[str]) -> dict[str, BreakerState]:
    """Do the same as `check` for several destinations, with one read for all of them."""
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


# All values are computed from the locked row, so that simultaneous failures are all counted. The
# failure of a message that was sent before the breaker opened does not keep it open for longer.
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
    """Count failures. Return the seconds for which the breaker is open now, 0 if it is closed.

    `at_once` opens it after one failure: for a destination that could not be reached.
    `probe`: the probe failed, so the breaker opens for twice as long as the last time.
    """
    limits = {"limit": ERRORS_TO_OPEN, "shortest": SHORTEST_SECONDS, "longest": LONGEST_SECONDS}
    values = {"name": name, "error": error[:500], "at_once": at_once, "probe": probe}
    [(seconds,)] = _query(_RECORD_FAILURE, **values, **limits, count=count)
    return float(seconds or 0.0)


_OPEN_FOR = f"""
INSERT INTO tailrace_jobs_breaker AS b (name, failures, opened, last_error, failed_at, open_until)
VALUES (%(name)s, 0, 0, %(error)s, {clock.NOW}, {clock.NOW} + make_interval(secs => %(seconds)s))
ON CONFLICT (name) DO UPDATE SET last_error = excluded.last_error,
  failed_at = excluded.failed_at, open_until = greatest(b.open_until, excluded.open_until)
RETURNING name
"""


def open_for(name: str, error: str, seconds: float) -> None:
    """Open the breaker for as long as the destination requested (Retry-After)."""
    _query(_OPEN_FOR, name=name, error=error[:500], seconds=seconds)


def record_success(name: str) -> None:
    """Close the breaker and reset its failures."""
    _query(_CLOSE, name=name)


_CLOSE = """
UPDATE tailrace_jobs_breaker SET failures = 0, opened = 0, open_until = NULL
WHERE name = %(name)s AND (failures > 0 OR open_until IS NOT NULL) RETURNING name
"""
