"""What the schedules of beat become: `beat_schedule`, and the rows of django-celery-beat."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from celery import Celery
from celery.schedules import crontab, maybe_schedule, schedule, solar
from django.apps import apps

from tailrace.db.connections import current
from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.frameworks.celery_tasks.schedules import moved as moved_names
from tailrace.jobs.models import Schedule, timing
from tailrace.jobs.platform.adopting.tasks import OF_CELERY, TaskReport, Verdict, queue_of

SETTING, ROWS = "beat_schedule", "django_celery_beat"
STAYS = "stays in beat, which goes on sending its task"
MOVED = "a schedule: it has moved, and beat leaves it out"
NO_TASK = "nothing: no task has this name"
_OF_ONE_CALL = ("countdown", "eta", "link", "link_error")
"""Options that no schedule of Tailrace has."""
_FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


@dataclass(frozen=True, slots=True)
class Entry:
    """One schedule as beat has it."""

    name: str
    source: str
    task: str
    when: Any
    """A schedule of Celery, a datetime, or the row of a solar schedule."""
    time_zone: str
    arguments: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    one_off: bool = False
    start: datetime | None = None
    end: datetime | None = None
    problem: str = ""
    row: int | None = None
    """The id of its row."""
    last_run: datetime | None = None
    moved: bool = False
    """Whether a schedule of Tailrace has taken its place."""


@dataclass(frozen=True, slots=True)
class ScheduleReport:
    name: str
    source: str
    task: str
    timing: str
    moves: bool
    becomes: str
    entry: Entry
    notes: tuple[str, ...] = ()
    queue: str = ""
    is_obstacle: bool = False
    """Its task does not exist, so it does nothing today either."""


def of_app(app: Celery, tasks: Mapping[str, TaskReport]) -> Iterator[ScheduleReport]:
    """Yield a report on each schedule: the rows of django-celery-beat, then the entries of
    `beat_schedule` that have no row."""
    rows = list(_rows())
    names = {row.name for row in rows}
    entries = [entry for entry in _entries(app) if entry.name not in names]
    moved = _moved()
    for entry in (*rows, *entries):
        yield _report(app, replace(entry, moved=entry.name in moved), tasks)


def _moved() -> set[str]:
    """Return the names of the schedules that have moved: none before the first `migrate`."""
    with current().cursor() as cursor:
        has_table = Schedule._meta.db_table in current().introspection.table_names(cursor)
    return moved_names() if has_table else set()


def _entries(app: Celery) -> Iterator[Entry]:
    for name, given in (app.conf.beat_schedule or {}).items():
        yield Entry(
            name, SETTING, given["task"], maybe_schedule(given["schedule"], app=app),
            str(app.timezone), [list(given.get("args") or ()), given.get("kwargs") or {}],
            given.get("options") or {},
        )  # fmt: skip


def _rows() -> Iterator[Entry]:
    if not apps.is_installed("django_celery_beat"):
        return
    from django_celery_beat.models import PeriodicTask

    related = ("interval", "crontab", "solar", "clocked")
    for row in PeriodicTask.objects.select_related(*related).order_by("name"):
        names = ("queue", "exchange", "routing_key", "priority", "expire_seconds")
        options = {name: value for name in names if (value := getattr(row, name)) is not None}
        try:
            arguments, problem = [json.loads(row.args or "[]"), json.loads(row.kwargs or "{}")], ""
            options["headers"] = json.loads(row.headers or "{}")
            when = _when(row)
        except (ValueError, AttributeError) as error:
            arguments, problem, when = None, str(error), None
        yield Entry(
            row.name, ROWS, row.task, when, str(row.crontab.timezone if row.crontab else "UTC"),
            arguments, options, row.enabled, row.one_off, row.start_time, row.expires, problem,
            row.pk, row.last_run_at,
        )  # fmt: skip


def _when(row: Any) -> Any:
    if row.clocked:
        return row.clocked.clocked_time
    return row.solar or row.schedule  # a solar schedule can be made with the package ephem only


def _report(app: Celery, entry: Entry, tasks: Mapping[str, TaskReport]) -> ScheduleReport:
    task = tasks.get(entry.task)
    queue = ""
    if task is not None and task.verdict != Verdict.STAYS and entry.enabled:
        given = {name: entry.options.get(name) for name in ("queue", "routing_key", "exchange")}
        queue = queue_of(app, app.tasks[entry.task], **given)
    moves, becomes = _becomes(entry, task, tasks)
    return ScheduleReport(
        entry.name, entry.source, entry.task, _words(entry), moves, becomes, entry,
        tuple(_notes(entry)) if moves else (), queue, becomes.startswith(NO_TASK),
    )  # fmt: skip


def _becomes(
    entry: Entry, task: TaskReport | None, tasks: Mapping[str, TaskReport]
) -> tuple[bool, str]:
    """Return whether a schedule can move, and what it becomes."""
    if entry.task.startswith(OF_CELERY):
        return False, f"{STAYS}: it is Celery's own"
    if task is None:
        return False, f"{NO_TASK}{did_you_mean(entry.task, tasks)}"
    if entry.moved:
        return False, MOVED
    if task.verdict == Verdict.STAYS:
        return False, f"{STAYS}: the task is no durable one"
    if entry.problem:
        return False, f"{STAYS}: it cannot be read: {entry.problem}"
    if not entry.enabled:
        return False, "nothing: it is disabled"
    if entry.end is not None and not entry.one_off:
        end = f"{entry.end:%Y-%m-%d %H:%M %Z}"
        return False, f"{STAYS}: it ends at {end}, and schedules have no end"
    if entry.one_off or isinstance(entry.when, datetime):
        return False, f"{STAYS} once, and that becomes one job"
    if option := next((name for name in _OF_ONE_CALL if entry.options.get(name)), ""):
        return False, f"{STAYS}: it has the option {option!r}"
    if isinstance(entry.options.get("expires"), datetime | str):
        return False, f"{STAYS}: it expires at a time"
    if isinstance(entry.when, solar) or type(entry.when).__name__ == "SolarSchedule":
        return False, f"{STAYS}: no schedule of Tailrace follows the sun"
    every, cron, why = timing_of(entry)
    if why:
        return False, f"{STAYS}: {why}"
    words = f"every {every:g} s" if every is not None else f"cron {cron!r} in {entry.time_zone}"
    return True, f"a schedule: {words}"


def timing_of(entry: Entry) -> tuple[float | None, str, str]:
    """Return the seconds of an interval, or the cron expression, or why there is neither."""
    when: Any = entry.when
    if isinstance(when, crontab):
        fields = [_field(getattr(when, f"_orig_{name}")) for name in _FIELDS]
        if fields[2] != "*" and fields[4] != "*":
            why = "it runs on days that match both fields; a cron expression on days that match one"
            return None, "", why
        cron = " ".join(fields)
        problems = timing.problems(None, cron, entry.time_zone, 0)
        return None, cron, "; ".join(problems.values())
    if type(when) is schedule:  # and no class of the project
        if when.relative:
            return None, "", "it is rounded to whole units (`relative`)"
        every = when.run_every.total_seconds()  # type: ignore[attr-defined]
        return every, "", "; ".join(timing.problems(every, "", "UTC", 0).values())
    return None, "", f"its class {type(when).__qualname__} is the project's own"


def _field(value: Any) -> str:
    """Return one field of a crontab of Celery in the words of cron: a number, a text or a set."""
    if isinstance(value, str | int):
        return str(value).replace(" ", "")
    return ",".join(map(str, sorted(value)))


def _notes(entry: Entry) -> Iterator[str]:
    if entry.start is not None:
        yield f"its first slot is not before {entry.start:%Y-%m-%d %H:%M %Z}"
    if seconds := _expiry(entry.options):
        yield f"each job expires {seconds:g} s after its slot"
    if queue := entry.options.get("queue"):
        yield f"its jobs are run by workers of the queue {queue!r}"
    if entry.options.get("priority") is not None:
        yield "its priority has no effect: all jobs of a task's schedules have the same"
    if entry.options.get("exchange"):
        yield "its exchange has no meaning"


def _expiry(options: Mapping[str, Any]) -> float:
    expires = options.get("expires") or options.get("expire_seconds") or 0
    return float(expires.total_seconds() if isinstance(expires, timedelta) else expires)


def _words(entry: Entry) -> str:
    """Return the timing as beat shows it."""
    if isinstance(entry.when, datetime):
        return f"clocked {entry.when:%Y-%m-%d %H:%M:%S %Z}"
    text = str(entry.when if entry.when is not None else "").strip("<>")
    return f"{text}, once" if entry.one_off else text
