"""System checks: what is wrong with a handler or a setting is said at start-up, by its name."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from events import clock
from jobs import registry
from jobs.handler import LOWEST_PRIORITY, Cron, Handler

RESERVED = ("jobs.tick", "jobs.sweep", "jobs.prune")


@register()
def check_handlers(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    classes = registry.classes()
    return [*_one_per_queue(classes), *(error for cls in classes for error in _check(cls))]


def _one_per_queue(classes: list[type[Handler]]) -> Iterator[CheckMessage]:
    by_name = defaultdict(list)
    for cls in classes:
        by_name[cls.name].append(f"{cls.__module__}.{cls.__qualname__}")
    for name, owners in by_name.items():
        if len(owners) > 1:
            yield Error(
                f"the queue {name!r} has {len(owners)} handlers: {', '.join(sorted(owners))}",
                hint="one handler per queue: give each a name of its own",
                id="jobs.E001",
            )
        if name in RESERVED:
            yield Error(f"{owners[0]}: the name {name!r} is beat's", id="jobs.E002")


def _check(cls: type[Handler]) -> Iterator[CheckMessage]:
    for problem in _problems(cls):
        yield Error(f"handler {cls.name!r}: {problem}", obj=cls, id="jobs.E003")


def _problems(cls: type[Handler]) -> Iterator[str]:
    has_handle = cls.handle is not Handler.handle
    if has_handle == cls.in_batches():
        yield "it has to have either handle(job) or handle_batch(jobs)"
    for field in ("batch_size", "max_attempts", "claim_timeout"):
        if getattr(cls, field) <= 0:
            yield f"{field} is {getattr(cls, field)}; it has to be above 0"
    for field in ("max_running", "time_limit", "backfill"):
        value = getattr(cls, field)
        if value is not None and value <= 0:
            yield f"{field} is {value}; it has to be above 0, or None"
    if not 0 <= cls.priority <= LOWEST_PRIORITY:
        yield f"priority is {cls.priority}; it has to be from 0 to {LOWEST_PRIORITY}"
    for event_type in cls.on:
        if not isinstance(event_type, type):
            yield f"on has {event_type!r}; it takes event types, not their names"
    if isinstance(cls.schedule, Cron):
        try:
            next(CronSim(cls.schedule.expression, clock.now()))
            ZoneInfo(cls.schedule.tz)
        except (CronSimError, KeyError, ValueError, StopIteration) as error:
            yield f"its schedule {cls.schedule} is none: {error}"


LIMITS = {
    "JOBS_DRAIN_SECONDS": (0.1, 60),
    "JOBS_TIME_LIMIT": (1, 86_400),
    "JOBS_TICK_SECONDS": (0.2, 60),
    "JOBS_SWEEP_SECONDS": (1, 3600),
    "JOBS_RETENTION_DAYS": (1, 36_500),
    "JOBS_FAILED_RETENTION_DAYS": (1, 36_500),
    "JOBS_RECORDS_RETENTION_DAYS": (1, 36_500),
    "EVENTS_RETENTION_DAYS": (1, 36_500),
}
"""Lowest and highest value of each setting."""


@register()
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    errors: list[CheckMessage] = []
    for name, (low, high) in LIMITS.items():
        value = getattr(settings, name)
        if not low <= value <= high:
            errors.append(
                Error(
                    f"{name} is {value}",
                    hint=f"take a value from {low:g} to {high:g}",
                    id="jobs.E010",
                )
            )
    for path in settings.JOBS_ERROR_REPORTERS:
        try:
            import_string(path)
        except ImportError as error:
            errors.append(Error(f"JOBS_ERROR_REPORTERS names {path!r}: {error}", id="jobs.E011"))
    return errors
