"""check: look at every kind, look again at what was found, repair on request, look once more."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

import structlog
from django.db import DatabaseError

from jobs.fsck import (
    of_attempts,
    of_events,
    of_guards,
    of_jobs,
    of_queues,
    of_schedules,
    of_waiting,
)
from jobs.fsck.kind import MOST, Kind, RowKind, Scope, scan

log = structlog.get_logger(__name__)

REPAIRED_AT_ONCE = 1000
"""Keys that one repair takes: it locks their rows."""

KINDS: tuple[type[Kind], ...] = (
    of_guards.GuardsStand,
    of_guards.OwedOnce,
    of_guards.UniqueWhileUnstarted,
    of_jobs.StatesAreKnown,
    of_jobs.RunningIsLeased,
    of_jobs.LeasesEnd,
    of_jobs.RunningIsClaimed,
    of_jobs.FinishedHasATime,
    of_jobs.UnfinishedHasNone,
    of_jobs.LeasesAreOfRunning,
    of_jobs.CancelsAreHeard,
    of_jobs.PendingHasAHandler,
    of_jobs.WaitingHasAHandler,
    of_jobs.LanedHasALane,
    of_jobs.EventsExist,
    of_waiting.WaitsForUnfinished,
    of_waiting.WaitsForExisting,
    of_waiting.WaitsForOne,
    of_waiting.WaitsForOlder,
    of_attempts.AttemptsHaveJobs,
    of_attempts.AttemptsWereClaimed,
    of_queues.HandlersHaveQueues,
    of_queues.TokensCanBeSpent,
    of_queues.DueQueuesAreDrained,
    of_queues.RetiredQueuesAreEmpty,
    of_schedules.SchedulesKeepUp,
    of_schedules.SchedulesHaveHandlers,
    of_schedules.SlotsHaveTheirJobs,
    of_events.EventsHaveTheirJobs,
)


@dataclass(slots=True)
class Report:
    """What a run has to say of one kind."""

    kind: Kind
    found: list[Any] = field(default_factory=list)
    """Confirmed by the second look; MOST at most."""
    left: list[Any] = field(default_factory=list)
    """Of those, what was not repaired."""
    error: str = ""
    """Why the kind could not be checked or repaired."""

    @property
    def clean(self) -> bool:
        return not self.left and not self.error


def everything() -> list[Kind]:
    """Return one of each kind."""
    return [kind() for kind in KINDS]


def check(
    kinds: Sequence[Kind], scope: Scope, *, fix: bool = False, pause: Callable[[], None]
) -> list[Report]:
    """Check these kinds, and repair what can be if `fix`; return a report of each.

    `pause` is called between the first look and the second, if the first found anything: what was
    in flight then is through.
    """
    reports = [Report(kind) for kind in kinds]
    suspects = _first_look(reports, scope)
    if any(suspects.values()):
        pause()
    for report in reports:
        keys = suspects[report.kind.name]
        report.found = report.left = _guarded(report, lambda r=report, k=keys: _again(r, k, scope))  # type: ignore[misc]
        if fix and report.found and report.kind.repairs:
            _repair(report, scope)
    return reports


def pause_for(seconds: float) -> Callable[[], None]:
    return lambda: time.sleep(seconds)


def _first_look(reports: Iterable[Report], scope: Scope) -> dict[str, list[Any]]:
    """Return what each kind finds; those on rows of one table share one pass over it."""
    found: dict[str, list[Any]] = {report.kind.name: [] for report in reports}
    on_rows = [report for report in reports if isinstance(report.kind, RowKind)]
    on_rows.sort(key=_table)
    for _name, group in groupby(on_rows, key=_table):
        _look_at_table(list(group), found)
    for report in reports:
        if not isinstance(report.kind, RowKind):
            name = report.kind.name
            found[name] = _guarded(report, lambda r=report: list(islice(r.kind.find(scope), MOST)))  # type: ignore[misc]
    return found


def _table(report: Report) -> str:
    return report.kind.table if isinstance(report.kind, RowKind) else ""


def _look_at_table(reports: list[Report], found: dict[str, list[Any]]) -> None:
    kinds = [report.kind for report in reports if isinstance(report.kind, RowKind)]
    try:
        for kind, id in scan(kinds):
            if len(found[kind.name]) < MOST:
                found[kind.name].append(id)
    except DatabaseError as error:
        for report in reports:
            _say(report, error)


def _again(report: Report, keys: list[Any], scope: Scope) -> list[Any]:
    return report.kind.again(keys, scope) if keys else []


def _repair(report: Report, scope: Scope) -> None:
    def repair() -> list[Any]:
        for start in range(0, len(report.found), REPAIRED_AT_ONCE):
            report.kind.repair(report.found[start : start + REPAIRED_AT_ONCE], scope)
        return report.kind.again(report.found, scope)

    before = report.found
    report.left = _guarded(report, repair, before)
    log.info(
        "fsck.repaired",
        kind=report.kind.name,
        found=len(before),
        repaired=len(before) - len(report.left),
    )


def _guarded(
    report: Report, look: Callable[[], list[Any]], otherwise: list[Any] | None = None
) -> list[Any]:
    """One kind that cannot be checked hinders no other, and is not clean."""
    try:
        return look()
    except DatabaseError as error:
        _say(report, error)
        return otherwise or []


def _say(report: Report, error: DatabaseError) -> None:
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    report.error = f"{type(error).__name__}: {first}"
    log.warning("fsck.not_checked", kind=report.kind.name, error=report.error)
