"""Publish uploads and gatherings on Kafka."""

from collections.abc import Iterator, Sequence

from django.conf import settings

from tailrace.domains.photos.event_types import GatheringEvent, Uploaded
from tailrace.domains.photos.kafka.message import Message
from tailrace.domains.photos.kafka.publisher import KafkaPublisher
from tailrace.events.publish import Recorded
from tailrace.jobs.handler import ClaimedJob


class KafkaUploads(KafkaPublisher):
    """Publish each uploaded photo on PHOTOS_KAFKA_UPLOADS_TOPIC, keyed by its storage key.

    With its exact place, which people do not see.
    """

    name = "photos.kafka_uploads"
    on = [Uploaded]
    takes_hidden = True

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, Message]]:
        """Pass over events that were reduced because their photo was deleted."""
        for job, message in super().prepare(jobs):
            if job.event is not None and job.event.payload.storage_key is None:
                job.skip("the photo was deleted")
            else:
                yield job, message

    def topic(self) -> str:
        return settings.PHOTOS_KAFKA_UPLOADS_TOPIC

    def key(self, event: Recorded) -> str:
        return str(event.payload.storage_key)


class KafkaUpdates(KafkaPublisher):
    """Publish the events of gatherings on PHOTOS_KAFKA_UPDATES_TOPIC, keyed by the gathering.

    A gathering is a lane: its next message is sent when the one before it is acknowledged.
    """

    name = "photos.kafka_updates"
    on = [GatheringEvent]
    ordered = True

    def topic(self) -> str:
        return settings.PHOTOS_KAFKA_UPDATES_TOPIC

    def key(self, event: Recorded) -> str:
        return str(event.payload.gathering)

    def lane(self, event: Recorded, routing_key: str) -> str:
        return self.key(event)
