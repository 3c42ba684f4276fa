"""Arguments, callbacks and results in a serializer of the project's own: bytes that only its
decoder opens, in workers and in callers that read a result."""

from base64 import b64decode, b64encode
from typing import Any

from kombu.serialization import dumps, loads, prepare_accept_content
from kombu.serialization import registry as serializers  # type: ignore[attr-defined]

from tailrace.jobs.frameworks.celery_tasks.message.encoding import NOT_JSON, from_json, to_json
from tailrace.jobs.frameworks.celery_tasks.message.placeholders import is_placeholder

UNSAFE = ("pickle", "yaml")
"""Serializers that are never accepted: who can write a message can run code."""
MARKER = "tailrace.opaque"
"""The type, in kombu's JSON, of a whole value in a serializer of the project's own."""


def accepted_types(app: Any) -> set[str]:
    """Return the content types that the app accepts, without the unsafe ones."""
    unsafe = {serializers.name_to_type.get(name) for name in UNSAFE}
    return set(prepare_accept_content(app.conf.accept_content) or ()) - unsafe


def is_accepted(app: Any, serializer: str) -> bool:
    return serializers.name_to_type.get(serializer) in accepted_types(app)


def encoded(serializer: str, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, str]]:
    """Return the placeholders for results at their positions, as JSON values, and the other
    arguments as they are stored. Raises what the serializer raises."""
    args = list(args or ())
    waiting = [each if is_placeholder(each) else None for each in args]
    known = [None if is_placeholder(each) else each for each in args]
    opaque = _closed(serializer, [known, dict(kwargs or {})])
    return to_json(waiting) if any(waiting) else [], opaque


def decoded(
    app: Any, opaque: dict[str, str], waiting: list[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments, with the placeholders for results. Raises ContentDisallowed for a type
    that the app does not accept, DecodeError, or another error of kombu or of the decoder."""
    args, kwargs = _opened(app, opaque)
    for position, placeholder in enumerate(from_json(waiting)):
        if placeholder is not None:
            args[position] = placeholder
    return list(args), kwargs


def value_to_json(app: Any, serializer: str | None, value: Any) -> Any:
    """Return the value as plain JSON values. If JSON would change it, and the serializer is of the
    project's own, it is in that. Raises TypeError or ValueError if it cannot be stored."""
    is_own = serializer not in (None, "json") and is_accepted(app, serializer)
    try:
        plain = to_json(value)
        if _is_opaque(plain):
            raise ValueError(f"an object of the type {MARKER!r} is reserved")
        if not is_own or from_json(plain) == value:
            return plain
    except NOT_JSON:
        if not is_own:
            raise
    return {"__type__": MARKER, "__value__": _closed(str(serializer), value)}


def value_from_json(app: Any, plain: Any) -> Any:
    """Return the value. Raises as `decoded` does."""
    return _opened(app, plain["__value__"]) if _is_opaque(plain) else from_json(plain)


def serializer_of(opaque: dict[str, str] | None) -> str | None:
    """Return the name of the serializer; None for JSON."""
    return None if opaque is None else serializers.type_to_name[opaque["type"]]


def _is_opaque(plain: Any) -> bool:
    return isinstance(plain, dict) and plain.get("__type__") == MARKER


def _closed(serializer: str, value: Any) -> dict[str, str]:
    content_type, encoding, data = dumps(value, serializer=serializer)
    stored = data.encode(encoding) if isinstance(data, str) else data
    return {"type": content_type, "encoding": encoding, "data": b64encode(stored).decode()}


def _opened(app: Any, opaque: dict[str, str]) -> Any:
    data, accept = b64decode(opaque["data"]), accepted_types(app)
    return loads(data, opaque["type"], opaque["encoding"], accept=accept)
