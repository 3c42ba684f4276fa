"""Publish uploads, deletions and gatherings to Kafka."""

from collections.abc import Iterator, Sequence

from tailrace.domains.photos.event_types import (
    Deleted,
    GatheringDissolved,
    GatheringEvent,
    Uploaded,
)
from tailrace.domains.photos.exchange.kafka.message import Message
from tailrace.domains.photos.exchange.kafka.publisher import KafkaPublisher
from tailrace.domains.photos.uploads.deletion.announce import (
    UPLOADS_QUEUE,
    being_sent,
    forget_keys,
)
from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.delivery import DeliveryStatus
from tailrace.jobs.destinations.handler import Delivery
from tailrace.jobs.handler import ClaimedJob


class KafkaUploads(KafkaPublisher):
    """Publish each uploaded photo, with its exact location, to PHOTOS_KAFKA_UPLOADS_TOPIC, keyed by
    its storage key."""

    name = UPLOADS_QUEUE
    on = [Uploaded]
    takes_hidden = True
    topic_setting = "PHOTOS_KAFKA_UPLOADS_TOPIC"
    key_field = "storage_key"

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, Message]]:
        """Skip the jobs of events whose payload was erased with their photo."""
        for job, message in super().prepare(jobs):
            if job.require_event().payload.storage_key is None:
                job.skip("the photo was deleted")
            else:
                yield job, message


class KafkaDeletions(KafkaPublisher):
    """Publish the deletion of each photo that was published to PHOTOS_KAFKA_UPLOADS_TOPIC: a
    message without a value, keyed by the storage key. Afterwards remove the storage key from the
    events."""

    name = "photos.kafka_deletions"
    on = [Deleted]
    takes_hidden = True
    topic_setting = "PHOTOS_KAFKA_UPLOADS_TOPIC"
    key_field = "storage_key"

    def wants(self, event: Recorded) -> bool:
        return super().wants(event) and event.payload.storage_key is not None

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, Message]]:
        """Snooze the jobs of photos that another job is sending, so that the deletion is sent after
        the photo."""
        sending = being_sent([job.require_event().payload.photo for job in jobs])
        for job, message in super().prepare(jobs):
            payload = job.require_event().payload
            if payload.storage_key is None:
                job.skip("its message was sent")
            elif payload.photo in sending:
                job.snooze("the photo itself is being sent", seconds=1)
            else:
                yield job, message

    def message(self, event: Recorded) -> Message:
        return Message.of_deletion(event, self.topic(), self.key(event))

    def finish(self, deliveries: Sequence[Delivery[Message]]) -> None:
        sent = [each.job for each in deliveries if each.result.status is DeliveryStatus.SENT]
        forget_keys([job.require_event().payload.photo for job in sent])


class KafkaUpdates(KafkaPublisher):
    """Publish the events of gatherings to PHOTOS_KAFKA_UPDATES_TOPIC, keyed by the gathering, which
    is also the lane: a message is sent only after the previous one was acknowledged."""

    name = "photos.kafka_updates"
    on = [GatheringEvent, GatheringDissolved]
    ordered = True
    topic_setting = "PHOTOS_KAFKA_UPDATES_TOPIC"
    key_field = "gathering"

    def lane(self, event: Recorded, routing_key: str) -> str:
        return self.key(event)
