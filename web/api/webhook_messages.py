"""What Tailrace sends to the addresses of others, as the `webhooks` of the OpenAPI document.

An app's `api` module declares its kinds of messages as `webhooks`, a function that returns them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.events.types import EventType
from tailrace.net.signing import HEADERS


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """A kind of message."""

    name: str
    summary: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of the body. It refers to `schemas` by `REF`."""
    example: Any
    """A body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What its headers mean, beside those of the signature."""
    schemas: Mapping[str, Any] = field(default_factory=dict)
    """Schemas to add to those of the document, by name."""
    group: str = "webhooks"


REF = "#/components/schemas/"
ANSWER = (
    "Received; nothing of the answer is read. 408, 429, 5xx, and no answer in time: it is sent"
    " again later, with the same `webhook-id`. Redirects are not followed."
)


def payload_schemas(event_type: type[EventType]) -> dict[str, Any]:
    """Return the schema of the type's payload, by the type's name, and those that it refers to."""
    name = event_type.name
    payload = event_type.Payload.model_json_schema(ref_template=f"{REF}{name}.{{model}}")
    parts = payload.pop("$defs", {})
    return {name: payload, **{f"{name}.{part}": schema for part, schema in parts.items()}}


def path_item(message: WebhookMessage) -> dict[str, Any]:
    """Return the OpenAPI description of the request that carries the message."""
    return {
        "post": {
            "operationId": f"webhook_{message.name}",
            "tags": [message.group],
            "summary": message.summary,
            "description": message.description,
            "security": [],
            "parameters": [
                {
                    "in": "header",
                    "name": name,
                    "required": True,
                    "description": meaning,
                    "schema": {"type": "string"},
                }
                for name, meaning in {**HEADERS, **message.headers}.items()
            ],
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {
                        "schema": dict(message.schema),
                        "example": message.example,
                    }
                },
            },
            "responses": {"2XX": {"description": ANSWER}},
        }
    }
