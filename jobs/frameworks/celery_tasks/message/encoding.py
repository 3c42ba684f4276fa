"""JSON as kombu writes it: times, UUIDs and decimals are objects with a marker of their type."""

import json
from typing import Any

from kombu.utils import json as kombu_json

from tailrace.events.publishing.validation import clean

NOT_JSON = (TypeError, ValueError, RecursionError)
"""What `to_json` raises."""


class NotJson(TypeError):
    """An argument of a task is not JSON."""


def to_json(value: Any) -> Any:
    """Return the value as plain JSON values. Raises TypeError or ValueError if it is no JSON that
    PostgreSQL can store."""
    text = kombu_json.dumps(value, allow_nan=False)
    plain = json.loads(text)
    if "\\u" in text and clean(plain)[1]:
        raise ValueError("it has a NUL character, or half a surrogate pair")
    return plain


def from_json(plain: Any) -> Any:
    return kombu_json.loads(json.dumps(plain))


def arguments_to_json(task: str, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call as plain JSON values. Raises NotJson with the names of the
    task and of the argument, and its type."""
    try:
        args_of, kwargs_of = to_json([list(args or ()), dict(kwargs or {})])
        return args_of, kwargs_of
    except NOT_JSON:
        named = [*enumerate(args or (), 1), *(kwargs or {}).items()]
        for name, value in named:
            try:
                to_json(value)
            except NOT_JSON as error:
                shown = f"{name}" if isinstance(name, int) else f"{name!r}"
                kind = f"{type(value).__module__}.{type(value).__qualname__}"
                raise NotJson(
                    f"{task}: argument {shown} (of type {kind}) is not JSON: {error};"
                    " pass an id or JSON values instead"
                ) from error
        raise
