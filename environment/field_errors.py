"""Convert pydantic's errors to paths and messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from tailrace.environment.suggest import did_you_mean

Path = tuple[str | int, ...]
"""Keys and indexes that lead from the outermost value to a part of it."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in a part of a value. If a field is missing, its path is where it should be."""

    path: Path
    detail: str


def field_errors(
    error: ValidationError, value: Any, model: type[BaseModel] | None = None
) -> list[FieldError]:
    """Return the errors of a value that failed validation.

    If `model` is given, errors about unknown keys suggest the nearest known key.
    """
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return [field_error(each, value, model) for each in details]


def field_error(
    details: Mapping[str, Any], value: Any, model: type[BaseModel] | None = None
) -> FieldError:
    """Convert one of pydantic's error dicts, with `loc`, `type` and `msg`."""
    path = _path(value, details["loc"], details["type"] == "missing")
    detail = str(details["msg"]).removeprefix("Value error, ") + hint(model, details)
    return FieldError(path, detail)


def hint(model: type[BaseModel] | None, item: Mapping[str, Any]) -> str:
    """Return `; did you mean …?` for an error about an unknown key, or an empty string."""
    if model is None or item["type"] != "extra_forbidden" or len(item["loc"]) != 1:
        return ""
    aliases = (field.validation_alias for field in model.model_fields.values())
    known = [*model.model_fields, *(alias for alias in aliases if isinstance(alias, str))]
    return did_you_mean(str(item["loc"][0]), known)


def _path(value: Any, location: Sequence[str | int], missing: bool) -> Path:
    """Return pydantic's location without the parts that are no keys or indexes of the value, such
    as members of unions and validators."""
    path: list[str | int] = []
    for position, part in enumerate(location):
        is_key = isinstance(value, Mapping) and part in value
        if is_key or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
        elif not (missing and isinstance(value, Mapping) and position == len(location) - 1):
            continue
        path.append(part)
    return tuple(path)
