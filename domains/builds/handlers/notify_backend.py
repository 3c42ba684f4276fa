"""builds.notify_backend: each event is announced on each configured bus."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from django.conf import settings

from domains.builds.bus import UNTRIED, Bus, Delivery, Down, Fate, Message, UnknownBus, connect
from domains.builds.event_types import BuildsEvent
from events.publish import Recorded
from jobs import breaker
from jobs.claimed import ClaimedJob
from jobs.destination import left_alone, release, settle, tell_breaker
from jobs.handler import Backoff, Handler
from jobs.outcomes import Permanent


@dataclass(slots=True)
class Batch:
    """The jobs of one destination that go out together."""

    name: str
    bus: Bus
    gate: breaker.Gate
    jobs: list[ClaimedJob] = field(default_factory=list)


class NotifyBackend(Handler):
    """Announce the event on a bus: one job for each of BUS_BACKENDS.

    The destinations share this queue and nothing else. Jobs are taken from their lanes in turn,
    a batch's destinations are served side by side, and one that is down is left alone by all
    workers (jobs/breaker.py), its jobs waiting without a charge. A job is charged an attempt when
    its destination answered it with an error, or broke down in front of it.
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
        batches = [batch for batch in map(_batch, *_by_destination(jobs)) if batch]
        for batch, deliveries in zip(batches, _deliver_all(batches), strict=True):
            _settle(batch, deliveries)


def _by_destination(jobs: Sequence[ClaimedJob]) -> tuple[list[str], list[list[ClaimedJob]]]:
    found: dict[str, list[ClaimedJob]] = defaultdict(list)
    for job in jobs:
        found[job.routing_key].append(job)
    return list(found), list(found.values())


def _batch(name: str, jobs: list[ClaimedJob]) -> Batch | None:
    """Return what may go out now; the jobs that may not are settled here."""
    try:
        bus = connect(name)
    except UnknownBus as error:
        for job in jobs:
            job.fail(str(error))
        return None
    except Down as error:
        left_alone(jobs, str(error), breaker.failed(_breaker(name), str(error), at_once=True))
        return None
    gate = breaker.gate(_breaker(name))
    if gate.wait:
        left_alone(jobs, f"{name} is left alone after {gate.failures} failures", gate.wait)
        return None
    return Batch(name, bus, gate, jobs)


def _breaker(name: str) -> str:
    return f"{NotifyBackend.name}:{name}"


def _deliver_all(batches: Sequence[Batch]) -> list[list[Delivery]]:
    """Serve the destinations side by side: one that hangs holds up nobody else's messages."""
    if len(batches) < 2:
        return [_deliver(batch, _messages(batch)) for batch in batches]
    with ThreadPoolExecutor(len(batches), thread_name_prefix="bus") as threads:
        running: list[Future[list[Delivery]]] = [
            threads.submit(_deliver, batch, _messages(batch)) for batch in batches
        ]
        return [future.result() for future in running]


def _messages(batch: Batch) -> list[Message]:
    return [_message(job) for job in batch.jobs]


def _message(job: ClaimedJob) -> Message:
    event = job.event
    if event is None:
        raise Permanent("its event is gone")
    of: type[BuildsEvent] = event.event_type  # type: ignore[assignment]
    return Message.build(event.id, settings.BUS_NAMESPACE, of.bus_key, of.wire_keys, event.payload)


def _deliver(batch: Batch, messages: list[Message]) -> list[Delivery]:
    """Send the messages; through a half-open breaker one, and the others if it arrives."""
    if not batch.gate.one:
        return _send(batch.bus, messages)
    first = _send(batch.bus, messages[:1])
    if first[0].fate is not Fate.SENT or len(messages) == 1:
        return first + [UNTRIED] * (len(messages) - 1)
    return first + _send(batch.bus, messages[1:])


def _send(bus: Bus, messages: list[Message]) -> list[Delivery]:
    try:
        return bus.send(messages)
    except Down as error:
        return [Delivery(Fate.DOWN, str(error))] + [UNTRIED] * (len(messages) - 1)


def _settle(batch: Batch, deliveries: Sequence[Delivery]) -> None:
    wait = tell_breaker(_breaker(batch.name), batch.gate, deliveries)
    settle(batch.jobs, deliveries, batch.gate, wait)
    if batch.gate.one and not wait:
        release(NotifyBackend.name, batch.name, by=f"{batch.name}, which is back")
