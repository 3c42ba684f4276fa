"""The messages to users' endpoints, for the API's OpenAPI document."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter

from tailrace.events.types import EventType
from tailrace.subscriptions.channels.webhook import message
from tailrace.subscriptions.channels.webhook.message import CHALLENGE_TYPE, TEST_TYPE
from tailrace.subscriptions.channels.webhook.operations.filters import sent_types
from tailrace.web.api.description.webhook_messages import REF, WebhookMessage, payload_schemas

EVENT = "EventMessage"


def webhooks() -> Iterator[WebhookMessage]:
    """Yield the test message, the challenge, and the message of each event type."""
    yield WebhookMessage(
        name=TEST_TYPE,
        summary="A test delivery",
        description="Sent when a user tests an endpoint without choosing an event type.",
        schema=_schema(message.TestMessage),
        example=json.loads(message.body_of_test()),
    )
    yield WebhookMessage(
        name=CHALLENGE_TYPE,
        summary="A challenge",
        description=(
            "With WEBHOOK_CONFIRM, a URL has to reply with the same"
            ' `{"challenge": …}` before events are sent to it.'
        ),
        schema=_schema(message.ChallengeMessage),
        example=json.loads(message.body_of_challenge("KXxqYX9Ch0Ki8nGZ")),
    )
    for event_type in sent_types():
        yield _event_message(event_type)


def _event_message(event_type: type[EventType]) -> WebhookMessage:
    """Return the message of this event type: the general schema, with the type's payload."""
    name = event_type.name
    own = {
        "type": {"const": name},
        "data": {
            "type": "object",
            "properties": {"type": {"const": name}, "payload": {"$ref": REF + name}},
        },
    }
    return WebhookMessage(
        name=name,
        summary=" ".join(event_type.description().split()).partition(". ")[0],
        description="Sent to endpoints of users with a subscription by the channel `webhook`.",
        schema={"allOf": [{"$ref": REF + EVENT}, {"type": "object", "properties": own}]},
        example=json.loads(message.body_of_sample(event_type)),
        schemas={EVENT: _schema(message.EventMessage), **payload_schemas(event_type)},
        group="webhooks of events",
    )


def _schema(body: Any) -> dict[str, Any]:
    """Return the JSON schema of a body, with its `$defs` inlined."""
    schema = TypeAdapter(body).json_schema()
    parts = schema.pop("$defs", {})
    for name, field in schema["properties"].items():
        part = field.pop("$ref", "").rpartition("/")[2]
        schema["properties"][name] = parts[part] if part else field
    return schema
