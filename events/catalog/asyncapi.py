"""Describe all event types as an AsyncAPI 3 document with JSON Schemas."""

from typing import Any

from tailrace.events.types import EventType, all_types


def document(title: str = "Tailrace events", version: str = "1.0.0") -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document: a channel, a message and a `receive` operation per type."""
    types = all_types()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": title,
            "version": version,
            "description": "All event types. Each event is recorded once, with a valid payload.",
        },
        "defaultContentType": "application/json",
        "channels": {
            name: {"address": name, "messages": {name: {"$ref": f"#/components/messages/{name}"}}}
            for name in (type.name for type in types)
        },
        "operations": {
            f"on.{type.name}": {
                "action": "receive",
                "channel": {"$ref": f"#/channels/{type.name}"},
                "summary": type.description(),
            }
            for type in types
        },
        "components": {"messages": {type.name: _message(type) for type in types}},
    }


def _message(event_type: type[EventType]) -> dict[str, Any]:
    bases = [base for base in event_type.__mro__[1:] if issubclass(base, EventType)]
    message: dict[str, Any] = {
        "name": event_type.name,
        "title": event_type.__name__,
        "summary": event_type.description(),
        "x-schema-version": event_type.schema_version,
        "payload": event_type.Payload.model_json_schema(
            ref_template=f"#/components/messages/{event_type.name}/payload/$defs/{{model}}"
        ),
    }
    if families := bases[:-1]:  # without EventType itself
        message["tags"] = [{"name": family.__name__} for family in families]
    return message
