"""Publish events to a Kafka topic, one batch of jobs at a time."""

from collections.abc import Sequence
from functools import partial

from django.conf import settings

from domains.photos.kafka.client import KafkaNotInstalled
from domains.photos.kafka.message import Message
from domains.photos.kafka.producer import Producer, producer
from events.publish import Recorded
from jobs.backoff import Backoff
from jobs.destinations import breaker
from jobs.destinations.breaker import BreakerState
from jobs.destinations.delivery import (
    NOT_TRIED,
    DeliveryResult,
    DeliveryStatus,
    apply_results,
    postpone,
    send_probed,
)
from jobs.handler import ClaimedJob, Handler


class KafkaPublisher(Handler):
    """Send events to a topic; without brokers in the settings there are no jobs.

    Each topic has a circuit breaker: while it is open, no worker sends, and the jobs wait without
    being charged an attempt. Topics share a cluster and nothing else: one may be missing or
    forbidden while another works.
    """

    batch_size = 100
    max_attempts = 12
    backoff = Backoff(5, 15, 60, 300, 900, 3600)
    claim_timeout = 60
    time_limit = 120

    def topic(self) -> str:
        """Return the topic's name."""
        raise NotImplementedError

    def key(self, event: Recorded) -> str:
        """Return the message key: messages with the same key keep their order."""
        raise NotImplementedError

    def wants(self, event: Recorded) -> bool:
        return bool(settings.PHOTOS_KAFKA_BROKERS)

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        if not settings.PHOTOS_KAFKA_BROKERS:
            for job in jobs:
                job.fail("PHOTOS_KAFKA_BROKERS is not set any more")
            return
        name = f"{self.name}:{self.topic()}"
        state = breaker.check(name)
        if state.wait:
            postpone(jobs, f"{name}: breaker open after {state.failures} failures", state.wait)
            return
        apply_results(self.name, None, name, state, jobs, self._send(jobs, state))

    def _send(self, jobs: Sequence[ClaimedJob], state: BreakerState) -> list[DeliveryResult]:
        try:
            client = producer()
        except Exception as error:
            # The package is missing, or the client does not accept its options: errors of any type.
            result = DeliveryResult(DeliveryStatus.UNAVAILABLE, _describe(error))
            return [result] + [NOT_TRIED] * (len(jobs) - 1)
        return send_probed(partial(self._send_all, client), jobs, state)

    def _send_all(self, client: Producer, jobs: Sequence[ClaimedJob]) -> list[DeliveryResult]:
        """Send the jobs' events; a job whose event was deleted is rejected."""
        deleted = DeliveryResult(DeliveryStatus.REJECTED, "its event was deleted")
        messages = [
            Message.of(job.event, self.topic(), self.key(job.event)) for job in jobs if job.event
        ]
        results = iter(client.send(messages) if messages else [])
        return [next(results) if job.event else deleted for job in jobs]


def _describe(error: Exception) -> str:
    if isinstance(error, KafkaNotInstalled):
        return str(error)
    return f"PHOTOS_KAFKA_OPTION_…: {error}"[:500]
