"""System checks that report wrong handlers and settings at start-up, by name."""

import inspect
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning, register
from django.utils.module_loading import import_string

from tailrace.db import clock
from tailrace.environment.conf import conf
from tailrace.environment.discovery import subclasses
from tailrace.environment.suggest import did_you_mean
from tailrace.events.types import EventType, all_types, find_type
from tailrace.jobs.engine import registry
from tailrace.jobs.handler import LOWEST_PRIORITY, MERGES, Backoff, Cron, Every, Handler


def _message(cls: type[Handler], text: str, id: str, kind: Any = Error) -> CheckMessage:
    return kind(text, hint=_place(cls), obj=cls, id=f"tailrace_jobs.{id}")


@register("jobs")
def check_handlers(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    classes = registry.handler_classes()
    return [
        *_without_name(),
        *_one_per_queue(classes),
        *(
            _message(cls, f"handler {cls.name!r}: {problem}", "E003")
            for cls in classes
            for problem in _problems(cls)
        ),
        *(warning for cls in classes for warning in _missing_apps(cls)),
    ]


def _without_name() -> Iterator[CheckMessage]:
    """Yield an error for each subclass of Handler in a module of handlers that has no name and no
    subclasses. Subclasses in `tailrace.jobs` itself are base classes."""
    for cls in subclasses(Handler):
        named = cls.__dict__.get("name") or cls.__subclasses__()
        module = cls.__module__
        if named or module.startswith("tailrace.jobs."):
            continue
        if "handlers" in module.split("."):
            text = (
                f"{module}.{cls.__qualname__} has no name, so it is not registered as a"
                " handler: set name = 'app.verb', which is also the name of its queue"
            )
            yield _message(cls, text, "E002")


def _one_per_queue(classes: list[type[Handler]]) -> Iterator[CheckMessage]:
    by_name = defaultdict(list)
    for cls in classes:
        by_name[cls.name].append(f"{cls.__module__}.{cls.__qualname__}")
    for name, owners in by_name.items():
        if len(owners) > 1:
            yield Error(
                f"queue {name!r} has {len(owners)} handlers: {', '.join(sorted(owners))}",
                hint="a queue has one handler: give each handler a different name",
                id="tailrace_jobs.E001",
            )


def _place(declared: Any) -> str:
    """Return the file and line of a class or function, or its module."""
    try:
        _, line = inspect.getsourcelines(declared)
        return f"{inspect.getsourcefile(declared)}:{line}"
    except (OSError, TypeError):  # it has no source file
        return f"in {declared.__module__}"


def _problems(cls: type[Handler]) -> Iterator[str]:
    yield from _wrong_kinds(cls)
    has_handle = cls.handle is not Handler.handle
    if has_handle == cls.in_batches():
        yield "it must have either handle(job) or handle_batch(jobs)"
    for name in ("handle", "handle_batch"):
        if wrong := _wrong_method(cls, name):
            yield f"its {name} {wrong}"
    for name in () if cls.is_async() else ("concurrency", "per_destination", "destination"):
        if getattr(cls, name) != getattr(Handler, name):
            yield (
                f"{name} has an effect only for handlers with `async def handle`, which run many"
                f" calls at once; {cls.__qualname__} has a plain function: use max_running, or"
                f" remove {name}"
            )
    if cls.in_batches_by_key():
        yield from _lane_problems(cls)
    for field in _ABOVE_ZERO:
        value = getattr(cls, field)
        if _is_number(value) and value <= 0:
            or_none = ", or None" if getattr(Handler, field) is None else ""
            yield f"{field} is {value}; it must be above 0{or_none}"
    if _is_number(cls.priority) and not 0 <= cls.priority <= LOWEST_PRIORITY:
        yield f"priority is {cls.priority}; it must be from 0 to {LOWEST_PRIORITY}"
    if cls.merge not in MERGES:
        yield f"merge is {cls.merge!r}; it must be {' or '.join(map(repr, MERGES))}"
    if cls.request_permission is not None and "." not in cls.request_permission:
        yield f"request_permission is {cls.request_permission!r}; write 'app.codename' or None"
    fields = getattr(cls.Payload, "model_fields", {})
    for field in cls.searchable:
        if field not in fields:
            yield f"searchable contains {field!r}, which is not a field of its Payload"
    if isinstance(cls.schedule, Cron):
        try:
            next(CronSim(cls.schedule.expression, clock.now()))
            ZoneInfo(cls.schedule.tz)
        except (CronSimError, KeyError, ValueError, StopIteration) as error:
            yield f"its schedule {cls.schedule} is invalid: {error}"


_ABOVE_ZERO = (
    "batch_size", "max_attempts", "claim_timeout", "concurrency", "max_running", "rate_limit",
    "time_limit", "backfill", "per_destination",
)  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong_kinds(cls: type[Handler]) -> Iterator[str]:
    """Yield a text for each field whose value has the wrong type, with the value to write."""
    for field in (*_ABOVE_ZERO, "priority", "delay"):
        value = getattr(cls, field)
        if not _is_number(value) and (value is not None or getattr(Handler, field) is not None):
            yield f"{field} is {value!r}; it must be a number"
    if not isinstance(cls.on, list | tuple):
        name = repr(cls.on) if isinstance(cls.on, str) else getattr(cls.on, "__name__", "EventType")
        yield f"on is {cls.on!r}; it must be a list of event types: on = [{name}]"
    else:
        for each in cls.on:
            if isinstance(each, str):
                if _is_installed(each) and find_type(each) is None:
                    yield f"on contains {each!r}; no event type has this name{_suggestion(each)}"
            elif not (isinstance(each, type) and issubclass(each, EventType)):
                yield f"on contains {each!r}; it must contain event types or their names"
    if not isinstance(cls.backoff, Backoff):
        yield f"backoff is {cls.backoff!r}; write Backoff(60, 300), the seconds before each retry"
    if not isinstance(cls.schedule, Every | Cron | None):
        yield f"schedule is {cls.schedule!r}; write Cron('0 8 * * *') or Every(60), in seconds"
    if not (cls.Payload is None or isinstance(cls.Payload, type)):
        yield f"Payload is {cls.Payload!r}; it must be a pydantic model"


def _suggestion(type_name: str) -> str:
    return did_you_mean(type_name, (event_type.name for event_type in all_types()))


def _is_installed(type_name: str) -> bool:
    names = {config.name.rpartition(".")[2] for config in apps.get_app_configs()}
    return type_name.partition(".")[0] in names


def _missing_apps(cls: type[Handler]) -> Iterator[CheckMessage]:
    """Yield a warning for each event type of an app that is not installed."""
    for each in cls.on if isinstance(cls.on, list | tuple) else ():
        if isinstance(each, str) and find_type(each) is None and not _is_installed(each):
            text = (
                f"handler {cls.name!r}: on contains {each!r}, whose app is not installed: the"
                f" handler gets none of these events{_suggestion(each)}"
            )
            yield _message(cls, text, "W004", Warning)


def _lane_problems(cls: type[Handler]) -> Iterator[str]:
    if not (cls.fair and cls.in_batches()) or cls.ordered:
        yield "batch_sizes() needs `fair = True` and handle_batch(jobs), and not `ordered = True`"
    for key, size in cls().batch_sizes().items():
        if size <= 0:
            yield f"batch_sizes() returns {size} for {key!r}; it must be above 0"
        if "/" in key:
            end = key.rpartition("/")[2]
            yield f"batch_sizes() has the key {key!r}, but a key is the end of lanes: write {end!r}"


_WRONG_KINDS_OF_FUNCTION = {
    inspect.iscoroutinefunction: "is declared with `async def`",
    inspect.isasyncgenfunction: "is declared with `async def`, and yields",
    inspect.isgeneratorfunction: "yields",
}


def _wrong_method(cls: type[Handler], name: str) -> str:
    """Return why a call of this method would fail or would not run its code; else ""."""
    function = inspect.unwrap(getattr(cls, name))
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        argument = "job" if name == "handle" else "jobs"
        return (
            f"is declared with the arguments {inspect.signature(function)}; write"
            f" def {name}(self, {argument}): {_place(function)}"
        )
    if name == "handle" and cls.is_async():
        return ""
    for is_kind, kind in _WRONG_KINDS_OF_FUNCTION.items():
        if is_kind(function):
            return (
                f"{kind}, so a call would not run its code; write a plain function: "
                f"{cls.__module__}.{cls.__qualname__}, {_place(function)}"
            )
    return ""


@register("jobs")
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    errors: list[CheckMessage] = []
    for path in conf.JOBS_ERROR_REPORTERS:
        try:
            import_string(path)
        except ImportError as error:
            text = f"JOBS_ERROR_REPORTERS contains {path!r}: {error}"
            errors.append(Error(text, id="tailrace_jobs.E011"))
    return errors
