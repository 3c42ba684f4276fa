"""photos.kafka_updates: what happens to gatherings is announced on Kafka, each one's in order."""

from django.conf import settings

from domains.photos.event_types import GatheringEvent
from domains.photos.kafka.outlet import Outlet
from events.publish import Recorded


class KafkaUpdates(Outlet):
    """Announce what happens to gatherings on PHOTOS_KAFKA_UPDATES_TOPIC, keyed by the gathering.

    A gathering is a lane: its next message is sent when the one before it is acknowledged.
    """

    name = "photos.kafka_updates"
    on = [GatheringEvent]
    ordered = True

    def topic(self) -> str:
        return settings.PHOTOS_KAFKA_UPDATES_TOPIC

    def key(self, event: Recorded) -> str:
        return str(event.payload["gathering"])

    def lane(self, event: Recorded, routing_key: str) -> str:
        return self.key(event)
