"""The message that an endpoint receives: one event as JSON, signed (Standard Webhooks)."""

import json
from typing import Any

from db import clock
from events.publish import Recorded
from net.encryption import decrypt
from net.http_client import Request
from net.signing import signed_headers, signer
from subscriptions.models import Endpoint
from subscriptions.rendering.event_text import render_event

TEST_TYPE = "tailrace.test"
CHALLENGE_TYPE = "tailrace.challenge"


def body_of(event: Recorded, role: str) -> bytes:
    """Return the body: always the same for the same event and role."""
    event_text = render_event(event)
    return _compact(
        {
            "type": event.type,
            "timestamp": event.occurred_at.isoformat(),
            "data": {
                "event": event.id,
                "type": event.type,
                "subject": event.subject,
                "actor": event.actor,
                "occurred_at": event.occurred_at.isoformat(),
                "payload": event.raw_payload,
                "title": event_text.title,
                "link": event_text.link,
                "reason": role,
            },
        }
    )


def body_of_test() -> bytes:
    """Return the body of a test delivery."""
    now = clock.now().isoformat()
    data = {"title": "A test delivery", "occurred_at": now}
    return _compact({"type": TEST_TYPE, "timestamp": now, "data": data})


def body_of_challenge(challenge: str) -> bytes:
    """Return the body that a URL has to answer with {"challenge": challenge}."""
    data = {"challenge": challenge}
    now = clock.now().isoformat()
    return _compact({"type": CHALLENGE_TYPE, "timestamp": now, "data": data})


def request_to(endpoint: Endpoint, id: str, body: bytes) -> Request:
    """Return the signed request; DecryptionError if the endpoint's secret cannot be read.

    For a day after a rotation, the secret before signs as well.
    """
    old = [secret for secret, _until in endpoint.old_secrets_at(clock.now())]
    signers = [signer(decrypt(secret)) for secret in (endpoint.secret, *old)]
    headers = {"content-type": "application/json", **signed_headers(id, body, *signers)}
    return Request(endpoint.url, headers, body)


def _compact(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")
