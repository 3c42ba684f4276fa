"""Publish events to a Kafka topic, one batch of jobs at a time."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar

from django.conf import settings

from tailrace.domains.photos.exchange.kafka.client import KafkaNotInstalled
from tailrace.domains.photos.exchange.kafka.message import Message
from tailrace.domains.photos.exchange.kafka.producer import producer
from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.delivery import NOT_TRIED, DeliveryResult, DeliveryStatus
from tailrace.jobs.destinations.handler import DestinationHandler
from tailrace.jobs.destinations.hidden import public_jobs
from tailrace.jobs.destinations.together import Together
from tailrace.jobs.handler import Backoff, ClaimedJob


class KafkaPublisher(DestinationHandler[Message]):
    """Send events to a topic, which is a destination of its own: it may be missing or forbidden
    while another works. Without PHOTOS_KAFKA_BROKERS, no jobs are created."""

    concurrency = per_destination = 100
    max_attempts = 12
    backoff = Backoff(5, 15, 60, 300, 900, 3600)
    claim_timeout = 60
    time_limit = 120
    takes_hidden: ClassVar[bool] = False
    """Whether hidden events are sent to the topic, too."""
    topic_setting: ClassVar[str]
    """The setting with the topic's name."""
    key_field: ClassVar[str]
    """The payload field with the message key: messages with the same key keep their order."""

    def topic(self) -> str:
        return str(getattr(settings, self.topic_setting))

    def key(self, event: Recorded) -> str:
        return str(getattr(event.payload, self.key_field))

    def wants(self, event: Recorded) -> bool:
        return bool(settings.PHOTOS_KAFKA_BROKERS)

    def destination(self, job: ClaimedJob) -> str:
        return self.topic()

    def lane_of(self, destination: str) -> None:
        return None

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, Message]]:
        for job in jobs if self.takes_hidden else public_jobs(jobs):
            if not settings.PHOTOS_KAFKA_BROKERS:
                job.fail("PHOTOS_KAFKA_BROKERS is not set any more")
            else:
                yield job, self.message(job.require_event())

    def message(self, event: Recorded) -> Message:
        return Message.of(event, self.topic(), self.key(event))

    async def send(self, message: Message) -> DeliveryResult:
        return await self._produced(message)

    @cached_property
    def _produced(self) -> Together[Message, DeliveryResult]:
        return Together(_produce, own_thread=True)


def _produce(messages: Sequence[Message]) -> list[DeliveryResult]:
    try:
        client = producer()
    except Exception as error:
        # The package is missing, or the client rejects its options: exceptions of any type.
        where = "" if isinstance(error, KafkaNotInstalled) else "PHOTOS_KAFKA_OPTION_…: "
        result = DeliveryResult(DeliveryStatus.UNAVAILABLE, f"{where}{error}"[:500])
        return [result] + [NOT_TRIED] * (len(messages) - 1)
    return client.send(messages)
