import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.events.errors import UnknownEventType
from tailrace.events.types import EventType, all_types, get_type


class Command(BaseCommand):
    help = "Print all event types as an AsyncAPI 3 document, or the JSON Schema of one type."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("type", nargs="?", help="print only the JSON Schema of this type")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["type"]:
            try:
                printed: Any = get_type(options["type"]).Payload.model_json_schema()
            except UnknownEventType as error:
                raise CommandError(str(error)) from None
        else:
            printed = document()
        self.stdout.write(json.dumps(printed, indent=2, ensure_ascii=False))


def document() -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document: a channel, a message and a `receive` operation per type."""
    types = all_types()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Tailrace events",
            "version": "1.0.0",
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
