"""webhooks: what an endpoint is sent: one event as JSON, signed as Standard Webhooks has it."""

import hashlib
import json
from typing import Any

from events import clock
from events.publish import Recorded
from subscriptions.models import Endpoint
from subscriptions.sealing import unseal
from subscriptions.sending import Request
from subscriptions.signing import key_of, sign
from subscriptions.story import tell

TEST_TYPE = "tailrace.test"


def body_of(event: Recorded, role: str) -> bytes:
    """Return the body, the same for the same event and role each time."""
    story = tell(event)
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
                "payload": event.payload,
                "title": story.title,
                "link": story.link,
                "reason": role,
            },
        }
    )


def body_of_test() -> bytes:
    """Return the body of a test delivery."""
    now = clock.now().isoformat()
    data = {"title": "A test delivery", "occurred_at": now}
    return _compact({"type": TEST_TYPE, "timestamp": now, "data": data})


def message_id(job_id: int, event: Recorded) -> str:
    """Return webhook-id: the same for each try of the job, and for a replay of it."""
    told = f"{job_id} {event.source} {event.source_id}"
    return f"msg_{job_id}_{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def request_to(endpoint: Endpoint, id: str, body: bytes) -> Request:
    """Return the signed request; sealing.Unreadable if the endpoint's secret cannot be read.

    While a new secret takes the place of an old one, both sign.
    """
    timestamp = str(int(clock.now().timestamp()))
    keys = [key_of(unseal(sealed)) for sealed in _sealed(endpoint)]
    headers = {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(sign(key, id, timestamp, body) for key in keys),
    }
    return Request(endpoint.url, headers, body)


def _sealed(endpoint: Endpoint) -> list[str]:
    until = endpoint.old_secret_until
    if endpoint.old_secret and until is not None and until > clock.now():
        return [endpoint.secret, endpoint.old_secret]
    return [endpoint.secret]


def _compact(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")
