"""Arguments in a serializer of the project's own: bytes that only its decoder opens, in workers."""

from base64 import b64decode, b64encode
from typing import Any

from kombu.serialization import dumps, loads, prepare_accept_content
from kombu.serialization import registry as serializers  # type: ignore[attr-defined]

from tailrace.jobs.frameworks.celery_tasks.message.encoding import from_json, to_json
from tailrace.jobs.frameworks.celery_tasks.message.placeholders import is_placeholder

UNSAFE = ("pickle", "yaml")
"""Serializers that are never accepted: who can write a message can run code."""


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
    content_type, encoding, data = dumps([known, dict(kwargs or {})], serializer=serializer)
    stored = data.encode(encoding) if isinstance(data, str) else data
    opaque = {"type": content_type, "encoding": encoding, "data": b64encode(stored).decode()}
    return to_json(waiting) if any(waiting) else [], opaque


def decoded(
    app: Any, opaque: dict[str, str], waiting: list[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments, with the placeholders for results. Raises ContentDisallowed for a type
    that the app does not accept, DecodeError, or another error of kombu or of the decoder."""
    data, accept = b64decode(opaque["data"]), accepted_types(app)
    args, kwargs = loads(data, opaque["type"], opaque["encoding"], accept=accept)
    for position, placeholder in enumerate(from_json(waiting)):
        if placeholder is not None:
            args[position] = placeholder
    return list(args), kwargs
