"""System checks: errors of handlers and settings are reported at start-up, by their names."""

import inspect
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from db import clock
from jobs import registry
from jobs.handler import LOWEST_PRIORITY, MERGES, Cron, Handler


@register()
def check_handlers(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    classes = registry.handler_classes()
    return [*_one_per_queue(classes), *(error for cls in classes for error in _check(cls))]


def _one_per_queue(classes: list[type[Handler]]) -> Iterator[CheckMessage]:
    by_name = defaultdict(list)
    for cls in classes:
        by_name[cls.name].append(f"{cls.__module__}.{cls.__qualname__}")
    for name, owners in by_name.items():
        if len(owners) > 1:
            yield Error(
                f"queue {name!r} has {len(owners)} handlers: {', '.join(sorted(owners))}",
                hint="one handler per queue: give each handler a name of its own",
                id="jobs.E001",
            )


def _check(cls: type[Handler]) -> Iterator[CheckMessage]:
    for problem in _problems(cls):
        yield Error(f"handler {cls.name!r}: {problem}", obj=cls, id="jobs.E003")


def _problems(cls: type[Handler]) -> Iterator[str]:
    has_handle = cls.handle is not Handler.handle
    if has_handle == cls.in_batches():
        yield "it must have either handle(job) or handle_batch(jobs)"
    yield from (f"its {name} {wrong}" for name in _CALLS if (wrong := _not_plain(cls, name)))
    if not cls.is_async():
        yield from (
            _only_async(cls, name)
            for name in _OF_ASYNC
            if getattr(cls, name) != getattr(Handler, name)
        )
    for field in ("batch_size", "max_attempts", "claim_timeout", "concurrency"):
        if getattr(cls, field) <= 0:
            yield f"{field} is {getattr(cls, field)}; it must be above 0"
    for field in ("max_running", "time_limit", "backfill", "per_destination"):
        value = getattr(cls, field)
        if value is not None and value <= 0:
            yield f"{field} is {value}; it must be above 0, or None"
    if not 0 <= cls.priority <= LOWEST_PRIORITY:
        yield f"priority is {cls.priority}; it must be from 0 to {LOWEST_PRIORITY}"
    if cls.merge not in MERGES:
        yield f"merge is {cls.merge!r}; it must be {' or '.join(map(repr, MERGES))}"
    if cls.request_permission is not None and "." not in cls.request_permission:
        yield f"request_permission is {cls.request_permission!r}, not 'app.codename' or None"
    for event_type in cls.on:
        if not isinstance(event_type, type):
            yield f"on contains {event_type!r}; it must contain event types, not names"
    if isinstance(cls.schedule, Cron):
        try:
            next(CronSim(cls.schedule.expression, clock.now()))
            ZoneInfo(cls.schedule.tz)
        except (CronSimError, KeyError, ValueError, StopIteration) as error:
            yield f"its schedule {cls.schedule} is invalid: {error}"


_OF_ASYNC = ("concurrency", "per_destination", "destination")


def _only_async(cls: type[Handler], name: str) -> str:
    return (
        f"{name} is of handlers with `async def handle`, whose calls are in flight together; "
        f"{cls.__qualname__} has a plain one: use max_running, or leave it out"
    )


_CALLS = ("handle", "handle_batch")
_NOT_PLAIN = {
    inspect.iscoroutinefunction: "is declared with `async def`",
    inspect.isasyncgenfunction: "is declared with `async def`, and yields",
    inspect.isgeneratorfunction: "yields",
}


def _not_plain(cls: type[Handler], name: str) -> str:
    """Return what is wrong with a function whose call would run nothing of it, and its place."""
    if name == "handle" and cls.is_async():
        return ""
    function = inspect.unwrap(getattr(cls, name))
    for is_so, words in _NOT_PLAIN.items():
        if is_so(function):
            code = function.__code__
            return (
                f"{words}, so a call would run nothing of it; write a plain function: "
                f"{cls.__module__}.{cls.__qualname__}, {code.co_filename}:{code.co_firstlineno}"
            )
    return ""


@register()
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    errors: list[CheckMessage] = []
    for path in settings.JOBS_ERROR_REPORTERS:
        try:
            import_string(path)
        except ImportError as error:
            errors.append(Error(f"JOBS_ERROR_REPORTERS names {path!r}: {error}", id="jobs.E011"))
    return errors
