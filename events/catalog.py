"""The event catalogue: every event type as one AsyncAPI 3 document with JSON Schemas."""

from typing import Any

from events.types import EventType, all_types


def document(title: str = "Tailrace events", version: str = "1.0.0") -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document: a channel, a message and a `receive` operation per type."""
    types = all_types()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": title,
            "version": version,
            "description": "What happened, by type: each recorded once, its payload validated.",
        },
        "defaultContentType": "application/json",
        "channels": {_key(type): _channel(type) for type in types},
        "operations": {f"on.{_key(type)}": _operation(type) for type in types},
        "components": {"messages": {_key(type): _message(type) for type in types}},
    }


def _key(event_type: type[EventType]) -> str:
    return event_type.name


def _channel(event_type: type[EventType]) -> dict[str, Any]:
    key = _key(event_type)
    return {
        "address": event_type.name,
        "messages": {key: {"$ref": f"#/components/messages/{key}"}},
    }


def _operation(event_type: type[EventType]) -> dict[str, Any]:
    return {
        "action": "receive",
        "channel": {"$ref": f"#/channels/{_key(event_type)}"},
        "summary": event_type.description(),
    }


def _message(event_type: type[EventType]) -> dict[str, Any]:
    families = [base.__name__ for base in event_type.__mro__[1:] if _is_family(base)]
    message: dict[str, Any] = {
        "name": event_type.name,
        "title": event_type.__name__,
        "summary": event_type.description(),
        "x-schema-version": event_type.schema_version,
        "payload": event_type.Payload.model_json_schema(
            ref_template=f"#/components/messages/{_key(event_type)}/payload/$defs/{{model}}"
        ),
    }
    if families:
        message["tags"] = [{"name": family} for family in families]
    return message


def _is_family(base: type) -> bool:
    return issubclass(base, EventType) and base is not EventType
