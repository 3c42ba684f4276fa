"""The builds' part of the API's document: the messages that are sent to buses over HTTP."""

import json
from collections.abc import Iterator

from tailrace.domains.builds.event_types.base import BuildsEvent
from tailrace.domains.builds.handlers.notify_backend import NotifyBackend
from tailrace.events.catalog.samples import sample_event
from tailrace.events.types import all_types
from tailrace.web.api.description.webhook_messages import REF, WebhookMessage, payload_schemas


def webhooks() -> Iterator[WebhookMessage]:
    """Yield the message that is sent to HTTP buses. It is the same for all event types."""
    types = [cls for cls in all_types() if issubclass(cls, BuildsEvent) and cls.bus_key]
    schemas = {name: schema for cls in types for name, schema in payload_schemas(cls).items()}
    first = min(types, key=lambda cls: cls.name)
    message = NotifyBackend().message_of(sample_event(first), first)
    yield WebhookMessage(
        name="builds.bus",
        summary="An event for a bus",
        description=(
            "The payload of a build service event, sent to each bus in BUS_BACKENDS that has an"
            " HTTP URL. The request is signed with BUS_WEBHOOK_SECRET."
        ),
        schema={"type": "object", "anyOf": [{"$ref": REF + cls.name} for cls in types]},
        example=json.loads(message.body),
        headers={"x-routing-key": f"The routing key of the event, such as `{message.key}`."},
        schemas=schemas,
    )
