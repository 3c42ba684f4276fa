"""Send each event to each configured bus."""

import json
from collections.abc import Iterator, Sequence

from django.conf import settings

from tailrace.domains.builds.destinations.base import Bus, Message, Unavailable, UnknownBus
from tailrace.domains.builds.destinations.connections import buses_for, connect
from tailrace.domains.builds.event_types.base import BuildsEvent, builds_type
from tailrace.events.publish import Recorded
from tailrace.jobs.destinations import breaker
from tailrace.jobs.destinations.delivery import DeliveryResult, postpone
from tailrace.jobs.destinations.handler import DestinationHandler
from tailrace.jobs.destinations.hidden import public_jobs
from tailrace.jobs.handler import Backoff, ClaimedJob


class NotifyBackend(DestinationHandler[tuple[Bus, Message]]):
    """Send the event to a bus. The event has one job for each bus in BUS_BACKENDS.

    Each bus has its own lane, concurrency limit and circuit breaker, and jobs are taken from the
    lanes in turn. Hidden events are sent only to the buses in BUS_TAKES_HIDDEN.
    """

    name = "builds.notify_backend"
    on = [BuildsEvent]
    concurrency = 256
    per_destination = 64
    max_attempts = 12
    backoff = Backoff(5, 15, 60, 300, 900, 3600)
    claim_timeout = 60
    time_limit = 120
    fair = True

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        return buses_for(event.event_type)

    def lane(self, event: Recorded, routing_key: str) -> str:
        return routing_key

    def prepare(
        self, jobs: Sequence[ClaimedJob]
    ) -> Iterator[tuple[ClaimedJob, tuple[Bus, Message]]]:
        for job in public_jobs(jobs, lambda job: job.routing_key in settings.BUS_TAKES_HIDDEN):
            try:
                bus = connect(job.routing_key)
            except UnknownBus as error:
                job.fail(str(error))
            except Unavailable as error:
                name = self.breaker_name(job.routing_key)
                wait = breaker.record_failure(name, str(error), at_once=True)
                postpone([job], str(error), wait)
            else:
                event = job.require_event()
                if event_type := builds_type(event):
                    yield job, (bus, self.message_of(event, event_type))
                else:
                    job.fail(f"no app declares the event type {event.type}")

    def message_of(self, event: Recorded, event_type: type[BuildsEvent]) -> Message:
        """Return the message about an event: its payload, with the keys in the wire order."""
        payload = event.raw_payload
        body = {key: payload[key] for key in event_type.wire_keys if key in payload}
        return Message(
            event.id,
            routing_key(event_type.bus_key),
            json.dumps(body, ensure_ascii=False).encode(errors="replace"),
            raw_type=event_type.raw_type,
            occurred_at=int(event.occurred_at.timestamp()),
        )

    async def send(self, message: tuple[Bus, Message]) -> DeliveryResult:
        bus, body = message
        return await bus.deliver(body)


def routing_key(key: str) -> str:
    """Return the routing key: BUS_NAMESPACE and the key."""
    return f"{settings.BUS_NAMESPACE}.{key}" if settings.BUS_NAMESPACE else key
