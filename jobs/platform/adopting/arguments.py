"""Find the parameters of a task whose declared types JSON cannot represent."""

import inspect
import typing
from collections.abc import Iterator
from datetime import date, time
from decimal import Decimal
from types import UnionType
from typing import Any
from uuid import UUID

from django.utils.functional import Promise
from kombu.utils import json
from pydantic import BaseModel

CARRIED = (
    type(None), bool, int, float, str, bytes, list, tuple, dict, date, time, Decimal, UUID, Promise
)  # fmt: skip
"""What kombu's JSON carries; datetime is a date."""


def not_json(task: Any) -> Iterator[str]:
    """Yield a note on each parameter whose annotation or default is not JSON. The values that
    callers pass are not known."""
    function = original(task)
    try:
        parameters = inspect.signature(function).parameters.values()
        annotations = typing.get_type_hints(function)
    except Exception:  # names of a type checker only, or a callable without a signature
        return
    for parameter in parameters:
        annotation = annotations.get(parameter.name)
        if annotation is not None and (wrong := _wrong_types(annotation, task)):
            yield f"the argument {parameter.name!r} is declared as {wrong[0]}"
        elif parameter.default not in (None, parameter.empty):
            kind = type(parameter.default)
            if not _is_carried(kind, task):
                yield f"the argument {parameter.name!r} has a {kind.__qualname__} as its default"


def original(task: Any) -> Any:
    """Return the function that the team wrote, without the wrappers of autoretry and pydantic."""
    return inspect.unwrap(getattr(task, "_orig_run", task.run))


def _wrong_types(annotation: Any, task: Any) -> list[str]:
    """Return the names of the classes in an annotation that JSON cannot carry."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _wrong_types(typing.get_args(annotation)[0], task)
    if origin is typing.Union or origin is UnionType:
        return [name for each in typing.get_args(annotation) for name in _wrong_types(each, task)]
    kind = origin or annotation
    if kind is typing.Literal or not inspect.isclass(kind) or kind is object:
        return []
    if not _is_carried(kind, task):
        return [kind.__qualname__]
    inner = typing.get_args(annotation)
    return [name for each in inner for name in _wrong_types(each, task)]


def _is_carried(kind: type, task: Any) -> bool:
    if inspect.isabstract(kind):  # Sequence, Mapping: a list or a dict is one
        return True
    if issubclass(kind, BaseModel) and _converts_models(task):
        return True
    registered = tuple(getattr(json, "_encoders", ()))
    return issubclass(kind, (*CARRIED, *registered)) or hasattr(kind, "__json__")


def _converts_models(task: Any) -> bool:
    """Return whether Celery itself converts models of pydantic to JSON and back (`pydantic=True`).
    Celery stores this only in its wrapper of the function."""
    run = getattr(task, "_orig_run", task.run)
    return getattr(run, "__globals__", {}).get("__name__") == "celery.app.base"
