"""Publish uploads and gatherings on Kafka."""

from django.conf import settings

from domains.photos.event_types import GatheringEvent, Uploaded
from domains.photos.kafka.publisher import KafkaPublisher
from events.publish import Recorded


class KafkaUploads(KafkaPublisher):
    """Publish each uploaded photo on PHOTOS_KAFKA_UPLOADS_TOPIC, keyed by its storage key."""

    name = "photos.kafka_uploads"
    on = [Uploaded]

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
