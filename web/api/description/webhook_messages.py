"""Messages that Tailrace sends to other servers, as the `webhooks` of the OpenAPI document.

An app's `api` module declares its messages as `webhooks`, a function that returns WebhookMessages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.events.types import EventType
from tailrace.net.signing import HEADERS


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    name: str
    summary: str
    description: str
    schema: Mapping[str, Any]
    """The JSON Schema of the body. It refers to `schemas` with the prefix REF."""
    example: Any
    """An example of the body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The meanings of headers besides the signature headers, by header name."""
    schemas: Mapping[str, Any] = field(default_factory=dict)
    """Schemas to add to the document, by name."""
    group: str = "webhooks"


REF = "#/components/schemas/"
ANSWER = (
    "The message was received; Tailrace does not read the body of the response. After 408, 429, 5xx"
    " or a timeout, the message is sent again later with the same `webhook-id`. Redirects are not"
    " followed."
)


def payload_schemas(event_type: type[EventType]) -> dict[str, Any]:
    """Return the schema of the type's payload and the schemas that it refers to, by name."""
    name = event_type.name
    payload = event_type.Payload.model_json_schema(ref_template=f"{REF}{name}.{{model}}")
    parts = payload.pop("$defs", {})
    return {name: payload, **{f"{name}.{part}": schema for part, schema in parts.items()}}


def path_item(message: WebhookMessage) -> dict[str, Any]:
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
