"""photos.kafka_uploads: each photo that was uploaded is announced on Kafka."""

from django.conf import settings

from domains.photos.event_types import Uploaded
from domains.photos.kafka.outlet import Outlet
from events.publish import Recorded


class KafkaUploads(Outlet):
    """Announce each uploaded photo on PHOTOS_KAFKA_UPLOADS_TOPIC, keyed by its storage key."""

    name = "photos.kafka_uploads"
    on = [Uploaded]

    def topic(self) -> str:
        return settings.PHOTOS_KAFKA_UPLOADS_TOPIC

    def key(self, event: Recorded) -> str:
        return str(event.payload["storage_key"])
