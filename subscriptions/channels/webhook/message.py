"""The message that an endpoint receives: one event as JSON, signed (Standard Webhooks)."""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from tailrace.db import clock
from tailrace.events.catalog.samples import sample_event
from tailrace.events.publish import Recorded
from tailrace.events.types import EventType
from tailrace.net.encryption import decrypt
from tailrace.net.http_client import Request
from tailrace.net.signing import signed_headers, signer
from tailrace.subscriptions.channels.http_channel import compact_json, message_id
from tailrace.subscriptions.models import Endpoint
from tailrace.subscriptions.notifications.rendering.event_text import render_event
from tailrace.subscriptions.types.recipient import first_job
from tailrace.subscriptions.types.subscribable import receiver_roles

TEST_TYPE: Literal["tailrace.test"] = "tailrace.test"
CHALLENGE_TYPE: Literal["tailrace.challenge"] = "tailrace.challenge"
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class EventData(TypedDict):
    """The event."""

    event: Annotated[int, Field(description="id of the event")]
    type: str
    subject: Annotated[str, Field(description="what the event is about")]
    actor: Annotated[str, Field(description="who caused the event; may be empty")]
    occurred_at: Time
    payload: Annotated[dict[str, Any], Field(description="as the event type declares it")]
    title: Annotated[str, Field(description="the event as one line of text")]
    link: Annotated[str, Field(description="URL of a page about the event; may be empty")]
    reason: Annotated[str, Field(description="the role in which you are notified")]


class EventMessage(TypedDict):
    """The message about an event."""

    type: Annotated[str, Field(description="the event type")]
    timestamp: Annotated[Time, Field(description="when the event happened")]
    data: EventData


class TestData(TypedDict):
    """The data of a test delivery."""

    title: str
    occurred_at: Time


class TestMessage(TypedDict):
    """A test delivery."""

    type: Literal["tailrace.test"]
    timestamp: Time
    data: TestData


class ChallengeData(TypedDict):
    """The data of a challenge."""

    challenge: Annotated[str, Field(description="the text to send back")]


class ChallengeMessage(TypedDict):
    """A challenge."""

    type: Literal["tailrace.challenge"]
    timestamp: Time
    data: ChallengeData


def webhook_id(job_id: int, routing_key: str, event: Recorded) -> str:
    """Return the webhook-id of a job's message: a repeated message has that of the first job."""
    return message_id(first_job(routing_key) or job_id, event)


def body_of(event: Recorded, role: str) -> bytes:
    """Return the body of an event's message, which depends only on event and role."""
    event_text = render_event(event)
    time = event.occurred_at.isoformat()
    data: EventData = {
        "event": event.id,
        "type": event.type,
        "subject": event.subject,
        "actor": event.actor,
        "occurred_at": time,
        "payload": event.raw_payload,
        "title": event_text.title,
        "link": event_text.link,
        "reason": role,
    }
    return compact_json(EventMessage(type=event.type, timestamp=time, data=data))


def body_of_sample(event_type: type[EventType]) -> bytes:
    """Return the body of a sample event of this type, which is valid by its schema."""
    roles = receiver_roles(event_type)
    return body_of(sample_event(event_type), roles[0] if roles else "")


def body_of_test() -> bytes:
    """Return the body of a test delivery."""
    now = clock.now().isoformat()
    data: TestData = {"title": "A test delivery", "occurred_at": now}
    return compact_json(TestMessage(type=TEST_TYPE, timestamp=now, data=data))


def body_of_challenge(challenge: str) -> bytes:
    """Return the body of a challenge, to which a URL has to reply {"challenge": challenge}."""
    now, data = clock.now().isoformat(), ChallengeData(challenge=challenge)
    return compact_json(ChallengeMessage(type=CHALLENGE_TYPE, timestamp=now, data=data))


def request_to(endpoint: Endpoint, id: str, body: bytes) -> Request:
    """Return the request, signed with the valid secrets. Raise DecryptionError."""
    old = [secret for secret, _until in endpoint.old_secrets_at(clock.now())]
    signers = [signer(decrypt(secret)) for secret in (endpoint.secret, *old)]
    headers = {"content-type": "application/json", **signed_headers(id, body, *signers)}
    return Request(endpoint.url, headers, body)
