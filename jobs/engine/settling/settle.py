"""Write how claims ended, in one statement. Only the owner of a claim settles it."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError

from db import connections, prepared
from db.arrays import number_array, text_array
from jobs.engine import dependents, totals, tracing
from jobs.engine.run.verdict import Verdict
from jobs.engine.settling.settle_sql import COMPLETE, SETTLE
from jobs.failures.record import count_settled
from jobs.states import State

log = structlog.get_logger(__name__)

TRIES = 6
"""A settlement that meets a broken connection is tried again: 0.1, 0.3, 0.9, 2.7, 8.1 s later."""


def settle(
    verdicts: Sequence[Verdict], tries: int | None = None, states: dict[int, str] | None = None
) -> dict[int, str]:
    """Settle claims of one handler; return the state of each job that was still ours to settle.

    Where another transaction holds the row of a job for long, or the unique key with which it would
    be pending again, the others are settled without it; then it is tried again. `states`: where to
    put what is returned, group by group, so that it is known of those that were settled before an
    error.
    """
    began = tracing.now()
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
            groups += group[:middle], group[middle:]  # last of all those that are alone
            continue
        states.update({id: state for id, state, _waited_for in rows})
        dependents.release([id for id, _state, waited_for in rows if waited_for])
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
        tracing.settled(verdict.job, began, state, outcome, verdict.error_class)


def _count(verdicts: Sequence[Verdict], states: Mapping[int, str]) -> None:
    """Count how these claims ended: for /metrics, and the failures in their groups. Mark those of
    silenced groups."""
    settled = [verdict for verdict in verdicts if verdict.job.id in states]
    for verdict in settled:
        totals.settled(verdict, states[verdict.job.id])
    silenced = count_settled(verdict.failure for verdict in settled if verdict.failure)
    for verdict in settled:
        verdict.silenced = verdict.failure is not None and verdict.failure.id in silenced


def _settle(verdicts: Sequence[Verdict], tries: int | None) -> list[tuple[int, str, bool]]:
    """Return the id and state of each settled job, and whether others wait for it."""
    if all(v.state is State.COMPLETED and not (v.result or v.error) for v in verdicts):
        return _execute(COMPLETE, _claims(verdicts), tries, alone=len(verdicts) == 1)
    params = _claims(verdicts) | _outcomes(verdicts)
    return _execute(SETTLE, params, tries, alone=len(verdicts) == 1)


def _log_lost(verdicts: Sequence[Verdict], states: Mapping[int, str]) -> None:
    if lost := [verdict.job.id for verdict in verdicts if verdict.job.id not in states]:
        log.warning("settle.lease_lost", jobs=lost[:20], count=len(lost))


def _claims(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "worker": text_array(v.job.worker for v in verdicts),
        "id": number_array(v.job.id for v in verdicts),
        "claim_no": number_array(v.job.claim_no for v in verdicts),
        "call_after": number_array(v.job.call_after for v in verdicts),
        "call_took": number_array(v.job.call_took for v in verdicts),
    }


def _outcomes(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "state": [v.state.value for v in verdicts],
        "attempt": [v.attempt and v.attempt.value for v in verdicts],
        "delay": [v.delay for v in verdicts],
        "until": [v.until for v in verdicts],
        "uncharged": [0 if v.charged else 1 for v in verdicts],
        "result": [v.result for v in verdicts],
        "error": [v.error for v in verdicts],
        "error_class": [v.error_class for v in verdicts],
        "traceback": [v.traceback for v in verdicts],
        "suspect_group": [v.suspect_group for v in verdicts],
        "failure_group": [v.failure and v.failure.id for v in verdicts],
    }


def _execute(
    statement: str, params: dict[str, Any], tries: int | None, *, alone: bool
) -> list[tuple[Any, ...]]:
    """Execute, again over a new connection if the old one breaks: the effects are done, and an
    unsettled job would have them done again. The guard makes a second execution harmless.

    What waited too long is tried again only for a job that is alone."""
    wait = 0.1
    for left in reversed(range(tries or TRIES)):
        try:
            return prepared.query(statement, **params)
        except (OperationalError, InterfaceError, IntegrityError) as error:
            waited = connections.timed_out(error)
            if not left or connections.current().in_atomic_block or (waited and not alone):
                raise
            log.warning("settle.retry", jobs=params["id"], error=str(error).strip())
            if not isinstance(error, IntegrityError) and not waited:
                connections.current().close()
            time.sleep(wait)
            wait *= 3
    raise AssertionError("unreachable")
