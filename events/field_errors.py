"""Pydantic's errors, with the places of the value that they are about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from tailrace.events.suggest import did_you_mean

Path = tuple[str | int, ...]
"""Keys and indexes from the top of a value to a place in it."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong at a place of a value; the place of a missing field is where it belongs."""

    path: Path
    detail: str


def field_errors(
    error: ValidationError, value: Any, model: type[BaseModel] | None = None
) -> list[FieldError]:
    """Return the errors of a value that a model refused. With the model, an unknown key comes with
    the nearest known one."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return [field_error(each, value, model) for each in details]


def field_error(
    details: Mapping[str, Any], value: Any, model: type[BaseModel] | None = None
) -> FieldError:
    """Return one error as pydantic describes it, `loc`, `type` and `msg`."""
    path = _path(value, details["loc"], details["type"] == "missing")
    detail = str(details["msg"]).removeprefix("Value error, ") + hint(model, details)
    return FieldError(path, detail)


def hint(model: type[BaseModel] | None, item: Mapping[str, Any]) -> str:
    """Return which key of the model an error of pydantic may have meant; empty: none."""
    if model is None or item["type"] != "extra_forbidden" or len(item["loc"]) != 1:
        return ""
    aliases = (field.validation_alias for field in model.model_fields.values())
    known = [*model.model_fields, *(alias for alias in aliases if isinstance(alias, str))]
    return did_you_mean(str(item["loc"][0]), known)


def _path(value: Any, location: Sequence[str | int], missing: bool) -> Path:
    """Return the parts of pydantic's location that are places of the value: it names the members
    of unions and the validators, too."""
    path: list[str | int] = []
    for place, part in enumerate(location):
        is_key = isinstance(value, Mapping) and part in value
        if is_key or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
        elif not (missing and isinstance(value, Mapping) and place == len(location) - 1):
            continue
        path.append(part)
    return tuple(path)
