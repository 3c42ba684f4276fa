"""The messages that endpoints of users are sent, for the API's document."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter

from tailrace.events.types import EventType
from tailrace.subscriptions.channels.webhook import message
from tailrace.subscriptions.channels.webhook.filters import sent_types
from tailrace.subscriptions.channels.webhook.message import CHALLENGE_TYPE, TEST_TYPE
from tailrace.web.api.webhook_messages import REF, WebhookMessage, payload_schemas

EVENT = "EventMessage"


def webhooks() -> Iterator[WebhookMessage]:
    """Yield the test and the challenge, and the message of each event type that is sent."""
    yield WebhookMessage(
        name=TEST_TYPE,
        summary="A test delivery",
        description="Sent when somebody tests an endpoint without naming an event type.",
        schema=_schema(message.TestMessage),
        example=json.loads(message.body_of_test()),
    )
    yield WebhookMessage(
        name=CHALLENGE_TYPE,
        summary="A challenge",
        description=(
            "With WEBHOOK_CONFIRM, a URL has to answer it with"
            ' `{"challenge": …}`, the same text, before events are sent to it.'
        ),
        schema=_schema(message.ChallengeMessage),
        example=json.loads(message.body_of_challenge("KXxqYX9Ch0Ki8nGZ")),
    )
    for event_type in sent_types():
        yield _of_event(event_type)


def _of_event(event_type: type[EventType]) -> WebhookMessage:
    """Return the message of this type: that of all events, with its own payload."""
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
        description="Sent to the endpoints of those whose subscriptions notify them by `webhook`.",
        schema={"allOf": [{"$ref": REF + EVENT}, {"type": "object", "properties": own}]},
        example=json.loads(message.body_of_sample(event_type)),
        schemas={EVENT: _schema(message.EventMessage), **payload_schemas(event_type)},
        group="webhooks of events",
    )


def _schema(body: Any) -> dict[str, Any]:
    """Return the JSON schema of a body, with its parts in place."""
    schema = TypeAdapter(body).json_schema()
    parts = schema.pop("$defs", {})
    for name, field in schema["properties"].items():
        part = field.pop("$ref", "").rpartition("/")[2]
        schema["properties"][name] = parts[part] if part else field
    return schema
