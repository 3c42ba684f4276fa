"""Settle claims: write how they ended, in one statement. Only the owner of a claim can settle
it."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import structlog
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)

from tailrace.db import clock, connections
from tailrace.db.query import prepared, query
from tailrace.db.sql.arrays import arrays
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.failures.record import count_settled
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling.settle_sql import SETTLE, finish_sql
from tailrace.jobs.engine.traces import spans
from tailrace.jobs.engine.waking import dependents

log = structlog.get_logger(__name__)

TRIES = 6
"""Attempts to settle if the connection is broken: with waits of 0.1, 0.3, 0.9, 2.7 and 8.1 s."""

PREFIX = "tailrace_jobs_done_"
KEPT_SECONDS = 30.0
"""How long a process keeps the partition of today in its cache. A migration may add columns while
workers of older code run, and their values must not be lost when these workers move jobs."""


def settle(
    verdicts: Sequence[Verdict], tries: int | None = None, states: dict[int, str] | None = None
) -> dict[int, str]:
    """Settle claims of one handler. Return the new state of each settled job by its id; a job whose
    claim was lost is left out.

    If another transaction holds the row of a job for long, or the unique key that the job needs to
    be pending again, the other jobs are settled first and then this one. `states` is a dict to
    which the result is added group by group, so that the caller has it after an error, too.
    """
    began = spans.now()
    states = {} if states is None else states
    groups = deque([verdicts] if verdicts else [])
    blocked: OperationalError | None = None
    while groups:
        group = groups.popleft()
        try:
            rows = _settle(group, tries)
        except OperationalError as error:
            if not connections.timed_out(error) or connections.current().in_atomic_block:
                raise
            if len(group) == 1:
                blocked = error
                continue
            middle = len(group) // 2
            groups += group[:middle], group[middle:]  # so single jobs come last
            continue
        states.update({id: state for id, state, _waited_for in rows})
        if parents := [id for id, _state, waited_for in rows if waited_for]:
            table = table_of_today()
            dependents.release(parents, table.name if table else None)
        _log_lost(group, states)
        _count(group, states)
        if began:
            _end_spans(group, states, began)
    if blocked:
        raise blocked
    return states


def _end_spans(verdicts: Sequence[Verdict], states: Mapping[int, str], began: int) -> None:
    for verdict in verdicts:
        state = states.get(verdict.job.id, "lease_lost")
        outcome = verdict.attempt.value if verdict.attempt else ""
        spans.settled(verdict.job, began, state, outcome, verdict.error_class)


def _count(verdicts: Sequence[Verdict], states: Mapping[int, str]) -> None:
    """Count the settled claims and failures. Set `silenced` on failures of silenced groups."""
    settled = [verdict for verdict in verdicts if verdict.job.id in states]
    for verdict in settled:
        totals.settled(verdict, states[verdict.job.id])
    if failures := [verdict.failure for verdict in settled if verdict.failure]:
        silenced = count_settled(failures)
        for verdict in settled:
            verdict.silenced = verdict.failure is not None and verdict.failure.id in silenced


Rows = list[tuple[int, str, bool]]
"""The id and state of each settled job, and whether other jobs wait for it."""


def _settle(verdicts: Sequence[Verdict], tries: int | None) -> Rows:
    rows: Rows = _finish(verdicts, tries) if all(v.is_the_end for v in verdicts) else []
    finished = {id for id, _state, _waited_for in rows}
    if others := [verdict for verdict in verdicts if verdict.job.id not in finished]:
        params = _params(others) | arrays(others, _OF_OUTCOMES, _NUMBERS)
        # IntegrityError: another job has just got the unique key that a job needs to be pending.
        errors = (*_CONNECTION_ERRORS, IntegrityError)
        rows += _retried(lambda: prepared(SETTLE, **params), others, tries, errors)
    return rows


def _finish(verdicts: Sequence[Verdict], tries: int | None) -> Rows:
    """Settle jobs by moving them to the history, and return the moved jobs. The caller settles the
    others, if today's partition is missing or the cached columns are outdated."""
    params = _params(verdicts)

    def move() -> Rows:
        table = table_of_today()
        if table is None:
            return []
        rows: Rows = prepared(table.finish, attributes=table.attributes, **params)
        if len(rows) < len(verdicts):
            forget_table()
        return rows

    try:
        return _retried(move, verdicts, tries, _CONNECTION_ERRORS)
    except (ProgrammingError, IntegrityError) as error:
        if connections.current().in_atomic_block:
            raise
        log.warning("settle.not_moved", jobs=params["id"], error=str(error).strip())
        forget_table()
        return []


def _log_lost(verdicts: Sequence[Verdict], states: Mapping[int, str]) -> None:
    if lost := [verdict.job.id for verdict in verdicts if verdict.job.id not in states]:
        log.warning("settle.lease_lost", jobs=lost[:20], count=len(lost))


_OF_CLAIMS = ("id", "claim_no", "worker", "call_after", "call_took")
_OF_ENDS = ("state", "error", "result")
_OF_OUTCOMES = (
    "attempt", "delay", "until", "charged", "error_class", "traceback", "suspect_group",
    "failure_group",
)  # fmt: skip
_NUMBERS = {
    "id", "claim_no", "call_after", "call_took", "delay", "suspect_group", "failure_group",
}  # fmt: skip


def _params(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    jobs = [verdict.job for verdict in verdicts]
    return arrays(jobs, _OF_CLAIMS, _NUMBERS) | arrays(verdicts, _OF_ENDS, _NUMBERS)


_CONNECTION_ERRORS = (OperationalError, InterfaceError)


def _retried(
    work: Callable[[], Rows],
    verdicts: Sequence[Verdict],
    tries: int | None,
    errors: tuple[type[DatabaseError | InterfaceError], ...],
) -> Rows:
    """Return the result of `work`, which is repeated after one of these errors, on a new connection
    if it broke. The effects of the jobs have happened, and an unsettled job would run again. A
    repetition is harmless, because the statement checks the claim. After a timeout, it is repeated
    only for a single job."""
    wait = 0.1
    for tries_left in reversed(range(tries or TRIES)):
        try:
            return work()
        except errors as error:
            timed_out = connections.timed_out(error)
            blocks_others = timed_out and len(verdicts) > 1
            if not tries_left or connections.current().in_atomic_block or blocks_others:
                raise
            jobs = [verdict.job.id for verdict in verdicts]
            log.warning("settle.retry", jobs=jobs, error=str(error).strip())
            if isinstance(error, _CONNECTION_ERRORS) and not timed_out:
                connections.current().close()
            time.sleep(wait)
            wait *= 3
    raise AssertionError("unreachable")


def partition(day: date) -> str:
    """Return the name of the table for jobs that ended on this day (UTC)."""
    return f"{PREFIX}{day:%Y%m%d}"


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """Today's partition, and the statement that moves jobs into it."""

    name: str
    attributes: int
    """The number of columns of the live table, with dropped ones: each new column increases it."""
    finish: str
    """The statement that settles jobs and moves them."""


_TODAY = f"""
SELECT day, to_regclass('{PREFIX}' || to_char(day, 'YYYYMMDD')) IS NOT NULL,
  extract(epoch FROM (day + 1)::timestamp AT TIME ZONE 'UTC' - {clock.NOW})::float8, relnatts,
  (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
   WHERE attrelid = live.oid AND attnum > 0 AND NOT attisdropped)
FROM (SELECT ({clock.NOW} AT TIME ZONE 'UTC')::date AS day) today, pg_class live
WHERE live.oid = 'tailrace_jobs_live'::regclass
"""

_known: tuple[float, float, HistoryTable | None] = (0.0, 0.0, None)
"""The cache: until when it is valid (monotonic), the clock offset for which it is valid, and the
table."""


def table_of_today() -> HistoryTable | None:
    """Return the partition of today, or None if it does not exist yet."""
    global _known
    until, offset, table = _known
    if time.monotonic() < until and offset == clock.offset:
        return table
    [(day, exists, seconds, attributes, columns)] = query(_TODAY)
    table = None
    if exists:
        name = partition(day)
        table = HistoryTable(name, attributes, finish_sql(name, day, columns))
    _known = (time.monotonic() + min(seconds, KEPT_SECONDS), clock.offset, table)
    return table


def forget_table() -> None:
    global _known
    _known = (0.0, 0.0, None)
