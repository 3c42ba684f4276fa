"""Publish uploads and gatherings to Kafka."""

from collections.abc import Iterator, Sequence

from tailrace.domains.photos.event_types import GatheringEvent, Uploaded
from tailrace.domains.photos.exchange.kafka.message import Message
from tailrace.domains.photos.exchange.kafka.publisher import KafkaPublisher
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import ClaimedJob


class KafkaUploads(KafkaPublisher):
    """Publish each uploaded photo, with its exact location, to PHOTOS_KAFKA_UPLOADS_TOPIC, keyed by
    its storage key."""

    name = "photos.kafka_uploads"
    on = [Uploaded]
    takes_hidden = True
    topic_setting = "PHOTOS_KAFKA_UPLOADS_TOPIC"
    key_field = "storage_key"

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, Message]]:
        """Skip the jobs of events whose payload was erased with their photo."""
        for job, message in super().prepare(jobs):
            if job.event is not None and job.event.payload.storage_key is None:
                job.skip("the photo was deleted")
            else:
                yield job, message


class KafkaUpdates(KafkaPublisher):
    """Publish the events of gatherings to PHOTOS_KAFKA_UPDATES_TOPIC, keyed by the gathering, which
    is also the lane: a message is sent only after the previous one was acknowledged."""

    name = "photos.kafka_updates"
    on = [GatheringEvent]
    ordered = True
    topic_setting = "PHOTOS_KAFKA_UPDATES_TOPIC"
    key_field = "gathering"

    def lane(self, event: Recorded, routing_key: str) -> str:
        return self.key(event)
