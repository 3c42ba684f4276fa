"""What the tests of Kafka share: photos, events of gatherings, and the state of jobs."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Message

from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.create_photo import create_photo
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.models import Job

UPLOADS, UPDATES, DLQ, INLET = "photo-uploads", "event-updates", "photo-dlq", "photos-in"
UPLOADS_QUEUE, UPDATES_QUEUE = "photos.kafka_uploads", "photos.kafka_updates"
DELETIONS_QUEUE = "photos.kafka_deletions"
AT = datetime(2026, 7, 1, 12, tzinfo=UTC)


def photo(number: int = 0, **more: Any) -> Photo:
    """Store a photo; each number has its own place."""
    fields = {
        "lat": 50 + number / 100,
        "lon": 8.5,
        "taken_at": AT,
        "storage_key": f"p/{number}.jpg",
    }
    return create_photo(None, **(fields | more))


def photos(count: int) -> list[Photo]:
    return [photo(number) for number in range(count)]


def gathered(gathering: int, kind: str = "started", count: int = 5) -> Recorded:
    """Publish that a gathering started or was finalized."""
    payload = {
        "gathering": gathering, "lat": 50.0, "lon": 8.5, "radius": 10.0, "photo_count": count,
        "first_photo_at": AT, "last_photo_at": AT + timedelta(minutes=3),
    }  # fmt: skip
    return publish(NewEvent(f"photos.gathering_{kind}", payload))[0]


def jobs(handler: str) -> list[Job]:
    return list(Job.objects.filter(handler=handler).order_by("id"))


def states(handler: str) -> list[str]:
    return [job.state for job in jobs(handler)]


def headers(message: Message) -> dict[str, str]:
    return {name: value.decode() for name, value in message.headers() or []}


def incoming(number: int, **more: Any) -> tuple[bytes, bytes]:
    """Return key and value of a message to the consumer."""
    fields = {
        "storage_key": f"in/{number}.jpg", "lat": 50 + number / 1000, "lon": 8.5,
        "taken_at": AT.isoformat(),
    }  # fmt: skip
    return str(number).encode(), json.dumps(fields | more).encode()
