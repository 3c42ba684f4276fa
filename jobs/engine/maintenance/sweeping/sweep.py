"""Check the invariants that are due, repair their violations, and record the runs."""

import time
from collections.abc import Iterable

import structlog
from django.db import OperationalError

from tailrace.db import clock, connections
from tailrace.db.limits import reason, time_limits
from tailrace.db.query import query
from tailrace.jobs.models import SweepRun
from tailrace.jobs.runtime.invariant import Invariant, all_invariants

log = structlog.get_logger(__name__)

STATEMENT_SECONDS, LOCK_SECONDS = 10, 2
SWEEP_SECONDS = 60
"""A sweep ends after this time; the next sweep checks the other invariants."""


def sweep(names: Iterable[str] | None = None) -> list[SweepRun]:
    """Check the invariants whose interval has passed, or those with these names; return the runs.

    The invariant whose last check is the oldest comes first, so that each is checked sooner or
    later, even if a sweep has no time for all. If an invariant raises an error, takes too long or
    waits for a lock, the others are still checked. An invariant that another sweep is checking now
    is recorded as skipped.
    """
    ends = time.monotonic() + SWEEP_SECONDS
    invariants = {rule.name: rule for rule in all_invariants() if rule.every is not None}
    due = _due(invariants) if names is None else [name for name in invariants if name in names]
    runs: list[SweepRun] = []
    for name in due:
        if time.monotonic() > ends:
            log.warning("sweep.out_of_time", not_checked=due[len(runs) :])
            break
        runs.append(check(invariants[name]))
    return runs


def check(invariant: Invariant) -> SweepRun:
    """Check one invariant now."""
    began = time.monotonic()
    run = SweepRun(invariant=invariant.name, outcome=SweepRun.Outcome.CHECKED)
    try:
        with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
            if _lock(invariant):
                _repair(invariant, run)
            else:
                run.outcome = SweepRun.Outcome.SKIPPED
    except Exception as error:
        # An app's invariant may raise any error; the others are still checked.
        run.outcome, run.repaired, run.error = SweepRun.Outcome.ERROR, 0, reason(error)[:2000]
        trace = not isinstance(error, OperationalError)
        log.error("sweep.failed", invariant=invariant.name, error=run.error, exc_info=trace)
        connections.check_at_next_use()
    run.duration_ms = int((time.monotonic() - began) * 1000)
    _record(run)
    return run


def _repair(invariant: Invariant, run: SweepRun) -> None:
    violations = list(invariant.find())
    run.found = len(violations)
    if not violations:
        return
    if invariant.repairs:
        run.repaired = invariant.repair(violations)
    numbers = {"found": run.found, "repaired": run.repaired}
    log.info("sweep.repaired", invariant=invariant.name, **numbers, advice=invariant.advice)


def _lock(invariant: Invariant) -> bool:
    [(locked,)] = query(
        "SELECT pg_try_advisory_xact_lock(hashtext('tailrace.jobs.sweep'), hashtext(%(name)s))",
        name=invariant.name,
    )
    return bool(locked)


_LAST = """
SELECT id, started_at FROM tailrace_jobs_sweeprun WHERE invariant = {name} ORDER BY id DESC LIMIT 1
"""

# Invariants are checked up to 10 % early, because the sweeper's own interval is not exact. A time
# in the future means that the clock was set back.
_DUE = f"""
SELECT rule.name FROM unnest(%(names)s::text[], %(every)s::float[]) AS rule (name, every)
LEFT JOIN LATERAL ({_LAST.format(name="rule.name")}) last ON true
WHERE last.started_at IS NULL OR last.started_at NOT BETWEEN
  {clock.NOW} - make_interval(secs => rule.every * 0.9) AND {clock.NOW} + interval '1 minute'
ORDER BY last.started_at NULLS FIRST, rule.name
"""


def _due(invariants: dict[str, Invariant]) -> list[str]:
    every = [rule.every for rule in invariants.values()]
    with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
        return [name for (name,) in query(_DUE, names=list(invariants), every=every)]


_STARTED_AT = f"{clock.NOW} - make_interval(secs => %(duration_ms)s / 1000.0)"

# If an invariant holds again, as at its last check, no new row is written.
_RECORD = f"""
WITH again AS (
  UPDATE tailrace_jobs_sweeprun r
  SET checks = r.checks + 1, started_at = {_STARTED_AT}, duration_ms = %(duration_ms)s
  FROM ({_LAST.format(name="%(invariant)s")}) last
  WHERE r.id = last.id AND r.outcome = 'checked' AND r.found = 0
    AND %(outcome)s = 'checked' AND %(found)s = 0
  RETURNING r.id, r.started_at, r.checks
), new AS (
  INSERT INTO tailrace_jobs_sweeprun (invariant, outcome, found, repaired, started_at, duration_ms,
    error)
  SELECT %(invariant)s, %(outcome)s, %(found)s, %(repaired)s, {_STARTED_AT}, %(duration_ms)s,
         %(error)s
  WHERE NOT EXISTS (SELECT 1 FROM again)
  RETURNING id, started_at, checks
)
TABLE again UNION ALL TABLE new
"""


def _record(run: SweepRun) -> None:
    """Record the run: in the row of the last run if both found nothing, else in a new row."""
    names = ("invariant", "outcome", "found", "repaired", "duration_ms", "error")
    columns = {name: getattr(run, name) for name in names}
    with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
        [(run.pk, run.started_at, run.checks)] = query(_RECORD, **columns)


_UP_TO_DATE = f"""
SELECT r.outcome = 'checked' AND r.found <= r.repaired
  AND last.started_at > {clock.NOW} - make_interval(secs => %(every)s * 2 + 60)
FROM ({_LAST.format(name="%(name)s")}) last JOIN tailrace_jobs_sweeprun r USING (id)
"""


def is_up_to_date(invariant: Invariant) -> bool:
    """Return whether the sweeper will repair violations at its next check: it checks this invariant
    in time, and its last check repaired all."""
    if invariant.every is None or not invariant.repairs:
        return False
    rows = query(_UP_TO_DATE, name=invariant.name, every=invariant.every)
    return bool(rows and rows[0][0])
