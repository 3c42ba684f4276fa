"""Check several invariants: find violations, confirm them by a second check, repair them on
request, and check the repairs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

import structlog

from tailrace.db.limits import reason, time_limits
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import (
    LOCK_SECONDS,
    STATEMENT_SECONDS,
    RowInvariant,
    scan,
)
from tailrace.jobs.engine.maintenance.sweeping.sweep import is_up_to_date
from tailrace.jobs.runtime.invariant import Invariant

log = structlog.get_logger(__name__)

MAX_FOUND = 10_000
"""The maximum number of violations of an invariant that one run reports."""
REPAIR_BATCH = 1000
"""Violations that one transaction repairs, because it locks their rows."""


@dataclass(slots=True)
class Report:
    """The result of checking one invariant."""

    invariant: Invariant
    found: list[Any] = field(default_factory=list)
    """The confirmed violations, at most MAX_FOUND."""
    left: list[Any] = field(default_factory=list)
    """The violations that were not repaired."""
    locked: int = 0
    """How many violations in `left` are locked by another transaction."""
    left_to_sweeper: bool = False
    """Whether the sweeper repairs `left` at its next check."""
    error: str = ""
    """The error that stopped the check or the repair."""

    @property
    def clean(self) -> bool:
        return not self.error and (not self.left or self.left_to_sweeper)

    @property
    def more(self) -> bool:
        """Whether there may be more violations than in `found`."""
        one_pass = isinstance(self.invariant, RowInvariant)
        return len(self.found) >= (MAX_FOUND if one_pass else self.invariant.limit)


def check_all(
    invariants: Sequence[Invariant], *, fix: bool = False, pause: Callable[[], None]
) -> list[Report]:
    """Check these invariants and return a report of each; if `fix`, repair their violations.

    `pause` is called between the two checks if the first one found violations. It should wait until
    changes that were in progress at the first check are finished.
    """
    reports = [Report(invariant) for invariant in invariants]
    suspects = _first_look(reports)
    if any(suspects.values()):
        pause()
    for report in reports:
        if violations := suspects[report.invariant.name]:
            _second_look(report, violations)
        if report.found and fix and report.invariant.repairs:
            _repair(report)
    return reports


def _first_look(reports: Iterable[Report]) -> dict[str, list[Any]]:
    """Return the violations by invariant; all conditions on one table are checked in one pass."""
    suspects: dict[str, list[Any]] = {report.invariant.name: [] for report in reports}
    for table, group in groupby(sorted(reports, key=_table), key=_table):
        if table:
            _scan_table(list(group), suspects)
            continue
        for report in group:
            with _error_in(report), _limits_of(report):
                violations = islice(report.invariant.find(), MAX_FOUND)
                suspects[report.invariant.name] = list(violations)
    return suspects


def _table(report: Report) -> str:
    return report.invariant.table if isinstance(report.invariant, RowInvariant) else ""


def _scan_table(reports: list[Report], suspects: dict[str, list[Any]]) -> None:
    rules = [rule for report in reports if isinstance(rule := report.invariant, RowInvariant)]
    with _error_in(*reports):
        for rule, id in scan(rules):
            if len(suspects[rule.name]) < MAX_FOUND:
                suspects[rule.name].append(id)


def _second_look(report: Report, violations: list[Any]) -> None:
    with _error_in(report), _limits_of(report):
        report.found = report.left = report.invariant.confirm(violations)
        report.left_to_sweeper = bool(report.found) and is_up_to_date(report.invariant)


def _repair(report: Report) -> None:
    invariant, violations = report.invariant, report.found
    for start in range(0, len(violations), REPAIR_BATCH):
        with _error_in(report), time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
            invariant.repair(violations[start : start + REPAIR_BATCH])
    with _error_in(report), _limits_of(report):
        report.left = invariant.confirm(violations)
    if report.left and isinstance(invariant, RowInvariant):
        with _error_in(report), time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
            report.locked = invariant.locked_by_others(report.left)
    count = len(violations)
    log.info("fsck.repaired", kind=invariant.name, found=count, repaired=count - len(report.left))


def _limits_of(report: Report) -> Any:
    own = report.invariant.in_batches
    return nullcontext() if own else time_limits(STATEMENT_SECONDS, LOCK_SECONDS)


@contextmanager
def _error_in(*reports: Report) -> Iterator[None]:
    """Record an error in the reports, so that the other invariants are still checked."""
    try:
        yield
    except Exception as error:
        for report in reports:
            report.error = reason(error)
            log.warning("fsck.not_checked", kind=report.invariant.name, error=report.error)
