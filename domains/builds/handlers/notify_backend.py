"""Send each event to each configured bus."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from django.conf import settings

from domains.builds.destinations.base import Bus, Message, Unavailable, UnknownBus
from domains.builds.destinations.connections import connect
from domains.builds.event_types.base import BuildsEvent
from events.publish import Recorded
from jobs.backoff import Backoff
from jobs.destinations import breaker
from jobs.destinations.delivery import (
    NOT_TRIED,
    DeliveryResult,
    DeliveryStatus,
    apply_results,
    postpone,
    send_probed,
)
from jobs.handler import ClaimedJob, Handler
from jobs.outcomes import Permanent


@dataclass(slots=True)
class Batch:
    """The jobs of one destination that are sent together."""

    name: str
    bus: Bus
    state: breaker.BreakerState
    jobs: list[ClaimedJob]


class NotifyBackend(Handler):
    """Send the event to a bus: one job for each of BUS_BACKENDS.

    The destinations share only this queue. Jobs are taken from their lanes in turn, the
    destinations of a batch are served in parallel, and an unavailable destination is not tried by
    any worker for a while (jobs.destinations); its jobs wait without being charged an attempt. A
    job is charged an attempt when its destination answered with an error or became unavailable
    while it was sent.
    """

    name = "builds.notify_backend"
    on = [BuildsEvent]
    batch_size = 100
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

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        batches = _batches(jobs)
        for batch, results in zip(batches, _deliver_all(batches), strict=True):
            apply_results(
                self.name, batch.name, _breaker(batch.name), batch.state, batch.jobs, results
            )


def _batches(jobs: Iterable[ClaimedJob]) -> list[Batch]:
    by_destination: dict[str, list[ClaimedJob]] = defaultdict(list)
    for job in jobs:
        by_destination[job.routing_key].append(job)
    batches = (_batch(name, jobs) for name, jobs in by_destination.items())
    return [batch for batch in batches if batch]


def _batch(name: str, jobs: list[ClaimedJob]) -> Batch | None:
    """Return what can be sent now; the other jobs get their outcome here."""
    try:
        bus = connect(name)
    except UnknownBus as error:
        for job in jobs:
            job.fail(str(error))
        return None
    except Unavailable as error:
        postpone(jobs, str(error), breaker.record_failure(_breaker(name), str(error), at_once=True))
        return None
    state = breaker.check(_breaker(name))
    if state.wait:
        postpone(jobs, f"{name} is unavailable: {state.failures} failures in a row", state.wait)
        return None
    return Batch(name, bus, state, jobs)


def _breaker(name: str) -> str:
    return f"{NotifyBackend.name}:{name}"


def _deliver_all(batches: Sequence[Batch]) -> list[list[DeliveryResult]]:
    """Serve the destinations in parallel, so that one that hangs does not delay the others."""
    messages = [[_message(job) for job in batch.jobs] for batch in batches]
    if len(batches) < 2:
        return list(map(_deliver, batches, messages))
    with ThreadPoolExecutor(len(batches), thread_name_prefix="bus") as threads:
        return list(threads.map(_deliver, batches, messages))


def _message(job: ClaimedJob) -> Message:
    """Return the message about the job's event: its payload, with the keys in the wire's order."""
    event = job.event
    if event is None:
        raise Permanent("its event no longer exists")
    event_type: type[BuildsEvent] = event.event_type  # type: ignore[assignment]
    payload = event.raw_payload
    body = {key: payload[key] for key in event_type.wire_keys if key in payload}
    namespace = f"{settings.BUS_NAMESPACE}." if settings.BUS_NAMESPACE else ""
    text = json.dumps(body, ensure_ascii=False)
    return Message(event.id, namespace + event_type.bus_key, text.encode(errors="replace"))


def _deliver(batch: Batch, messages: list[Message]) -> list[DeliveryResult]:
    return send_probed(partial(_send, batch.bus), messages, batch.state)


def _send(bus: Bus, messages: Sequence[Message]) -> list[DeliveryResult]:
    try:
        return bus.send(messages)
    except Unavailable as error:
        unavailable = DeliveryResult(DeliveryStatus.UNAVAILABLE, str(error))
        return [unavailable] + [NOT_TRIED] * (len(messages) - 1)
