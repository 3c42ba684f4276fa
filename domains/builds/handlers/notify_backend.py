"""Send each event to each configured bus."""

import json
from collections.abc import Iterator, Sequence

from django.conf import settings

from domains.builds.destinations.base import Bus, Message, Unavailable, UnknownBus
from domains.builds.destinations.connections import connect
from domains.builds.event_types.base import BuildsEvent
from events.publish import Recorded
from jobs.backoff import Backoff
from jobs.destinations import breaker
from jobs.destinations.delivery import DeliveryResult, postpone
from jobs.destinations.handler import DestinationHandler
from jobs.handler import ClaimedJob


class NotifyBackend(DestinationHandler[tuple[Bus, Message]]):
    """Send the event to a bus: one job for each of BUS_BACKENDS.

    The buses share only this queue: jobs are taken from their lanes in turn, each bus has places
    and a circuit breaker of its own.
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

    def wants(self, event: Recorded) -> bool:
        return bool(getattr(event.event_type, "bus_key", ""))

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        return list(settings.BUS_BACKENDS)

    def lane(self, event: Recorded, routing_key: str) -> str:
        return routing_key

    def prepare(
        self, jobs: Sequence[ClaimedJob]
    ) -> Iterator[tuple[ClaimedJob, tuple[Bus, Message]]]:
        for job in jobs:
            try:
                bus = connect(job.routing_key)
            except UnknownBus as error:
                job.fail(str(error))
            except Unavailable as error:
                name = self.breaker_name(job.routing_key)
                wait = breaker.record_failure(name, str(error), at_once=True)
                postpone([job], str(error), wait)
            else:
                if job.event is None:
                    job.fail("its event no longer exists")
                else:
                    yield job, (bus, _message(job.event))

    async def send(self, message: tuple[Bus, Message]) -> DeliveryResult:
        bus, body = message
        return await bus.deliver(body)


def _message(event: Recorded) -> Message:
    """Return the message about an event: its payload, with the keys in the wire's order."""
    event_type: type[BuildsEvent] = event.event_type  # type: ignore[assignment]
    payload = event.raw_payload
    body = {key: payload[key] for key in event_type.wire_keys if key in payload}
    namespace = f"{settings.BUS_NAMESPACE}." if settings.BUS_NAMESPACE else ""
    text = json.dumps(body, ensure_ascii=False)
    return Message(event.id, namespace + event_type.bus_key, text.encode(errors="replace"))
