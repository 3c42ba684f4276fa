"""Publish that photos were deleted, and forget their storage keys when the consumers know it."""

from collections.abc import Sequence

from django.conf import settings

from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.domains.photos.event_types import Deleted
from tailrace.domains.photos.uploads.create_photo import SOURCE, source_id
from tailrace.events.privacy.erase import erase
from tailrace.events.publish import NewEvent, publish

UPLOADS_QUEUE = "photos.kafka_uploads"

# The message of a job that was cancelled before any claim was not sent.
_UPLOADED = """
SELECT (e.payload ->> 'photo')::bigint, NOT EXISTS (
  SELECT FROM tailrace_jobs_job j WHERE j.event_id = e.id AND j.handler = %(handler)s
    AND j.state = 'cancelled' AND j.claim_no = 0)
FROM tailrace_events_event e WHERE e.id = ANY(%(events)s::bigint[]) ORDER BY e.id
"""
_SENDING = """
SELECT (e.payload ->> 'photo')::bigint
FROM tailrace_events_event e JOIN tailrace_jobs_live j ON j.event_id = e.id
WHERE e.source = %(source)s AND e.source_id = ANY(%(source_ids)s::text[])
  AND j.handler = %(handler)s AND j.state = 'running'
"""


def publish_deleted(storage_keys: dict[int, str], uploads: Sequence[int]) -> None:
    """Publish an event for each deleted photo, given the storage keys by photo, and the events
    `photos.uploaded`, whose jobs are cancelled. Only an event whose photo was sent to Kafka has its
    storage key."""
    rows = query(_UPLOADED, handler=UPLOADS_QUEUE, events=number_array(uploads))
    keys = storage_keys if settings.PHOTOS_KAFKA_BROKERS else {}
    payloads = [
        {"photo": photo, "storage_key": keys.get(photo) if is_sent else None}
        for photo, is_sent in rows
    ]
    publish(
        NewEvent(
            Deleted, payload, source=SOURCE, source_id=_deletion_id(payload["photo"]), actor=""
        )
        for payload in payloads
    )


def being_sent(photos: Sequence[int]) -> set[int]:
    """Return which of these deleted photos a job sends to Kafka at this moment."""
    ids = text_array(source_id(photo) for photo in photos)
    rows = query(_SENDING, source=SOURCE, source_ids=ids, handler=UPLOADS_QUEUE)
    return {photo for (photo,) in rows}


def forget_keys(photos: Sequence[int]) -> None:
    """Remove the storage keys from the events of these deleted photos."""
    erase(SOURCE, [_deletion_id(photo) for photo in photos], keep=["photo"])


def _deletion_id(photo: int) -> str:
    return f"{source_id(photo)}/deleted"
