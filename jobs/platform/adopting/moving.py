"""Move schedules from beat to Tailrace, and back."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from celery import Celery
from django.apps import apps
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.jobs.frameworks.celery_tasks.message.encoding import NotJson
from tailrace.jobs.frameworks.celery_tasks.schedules import (
    OWNER,
    CannotMove,
    call_of_schedule,
    moved,
)
from tailrace.jobs.frameworks.celery_tasks.task import runs_as_job
from tailrace.jobs.models import Schedule
from tailrace.jobs.operations.schedules import NewSchedule, create_schedules, remove_schedules
from tailrace.jobs.platform.adopting.schedules import Entry, ScheduleReport, timing_of

_EXPIRES = "expire_seconds"


@dataclass(frozen=True, slots=True)
class Moved:
    name: str
    problem: str = ""
    """Why it stays in beat; empty if it was moved."""


def move_schedules(app: Celery, reports: Iterable[ScheduleReport]) -> list[Moved]:
    """Create schedules for the entries and rows of beat that can move, and disable the rows, in one
    transaction. Entries of `beat_schedule` are left out when beat starts the next time. Return what
    became of each enabled schedule.

    Raises InvalidSchedule, such as for a name that is too long: then none is moved.
    """
    with transaction.atomic():
        outcomes, new, rows, now = [], [], [], database_now()
        reports = list(reports)
        named = Schedule.objects.filter(name__in=[report.name for report in reports])
        taken = set(named.exclude(owner=OWNER).values_list("name", flat=True))
        for report in reports:
            if not report.entry.enabled or report.entry.moved:
                continue
            if not report.moves:
                outcomes.append(Moved(report.name, report.becomes))
                continue
            try:
                if report.name in taken:
                    raise CannotMove("another schedule has this name: rename the one in beat")
                new.append(_schedule(app, report.entry, now))
            except (CannotMove, NotJson) as error:
                outcomes.append(Moved(report.name, str(error)))
                continue
            outcomes.append(Moved(report.name))
            rows += [report.entry.row] if report.entry.row is not None else []
        create_schedules(new)
        _enable(rows, enabled=False)
    return outcomes


def move_schedules_back() -> list[str]:
    """Remove the schedules that were moved, with their unstarted jobs, and enable their rows, in
    one transaction. Beat uses the entries of `beat_schedule` again after its next start. Return the
    names."""
    with transaction.atomic():
        names = sorted(moved())
        if names:
            remove_schedules(owner=OWNER, reason="its schedule was moved back to beat")
            _enable(_rows_with(names), enabled=True)
    return names


def _schedule(app: Celery, entry: Entry, now: datetime) -> NewSchedule:
    if not runs_as_job(app._tasks.get(entry.task)):
        raise CannotMove("calls of its task do not create jobs")
    every, cron, _why = timing_of(entry)
    args, kwargs = entry.arguments
    handler, payload = call_of_schedule(app, entry.task, args, kwargs, _options(entry))
    zone = entry.time_zone if cron else "UTC"
    row = Schedule(name=entry.name, every_seconds=every, cron=cron, time_zone=zone)
    return NewSchedule(
        name=entry.name, handler=handler, payload=payload, every_seconds=every, cron=cron,
        time_zone=zone, owner=OWNER, next_run_at=_first_slot(row, entry, now),
    )  # fmt: skip


def _options(entry: Entry) -> dict[str, Any]:
    """Return the options with which beat calls the task."""
    options = {name: each for name, each in entry.options.items() if name != _EXPIRES}
    seconds = entry.options.get(_EXPIRES)
    if seconds is not None:
        options["expires"] = seconds
    if isinstance(expires := options.get("expires"), timedelta):
        options["expires"] = expires.total_seconds()
    return options | {"periodic_task_name": entry.name}


def _first_slot(row: Schedule, entry: Entry, now: datetime) -> datetime:
    """Return the next time at which beat would send the task: an interval counts from the last
    time, if that is known."""
    start = max(now, entry.start) if entry.start is not None else now
    if row.every_seconds is None:
        return row.first_slot(start)
    if entry.last_run is None:
        return start
    return max(start, entry.last_run + timedelta(seconds=row.every_seconds))


def _rows_with(names: Iterable[str]) -> list[int]:
    if not apps.is_installed("django_celery_beat"):
        return []
    from django_celery_beat.models import PeriodicTask

    return list(PeriodicTask.objects.filter(name__in=list(names)).values_list("pk", flat=True))


def _enable(rows: list[int], *, enabled: bool) -> None:
    if rows:
        from django_celery_beat.models import PeriodicTask, PeriodicTasks

        PeriodicTask.objects.filter(pk__in=rows).update(enabled=enabled)
        PeriodicTasks.update_changed()
