"""The base class of handlers that send each job's message to a destination over the network.

What all of them need is here, once: the circuit breaker of each destination, its rate limit, the
outcome that a result means for its job, and the jobs that become due when a destination is back.
A subclass says what is sent (`prepare`), how (`send`), and what a reply means (a DeliveryResult).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import uniform
from typing import Any, ClassVar, Generic, TypeVar

import structlog

from tailrace.jobs.destinations import breaker, rate_limit
from tailrace.jobs.destinations.breaker import BreakerState
from tailrace.jobs.destinations.delivery import (
    NOT_TRIED,
    DeliveryResult,
    DeliveryStatus,
    apply_results,
    breaker_is_open,
    postpone,
    release,
)
from tailrace.jobs.destinations.together import Together
from tailrace.jobs.handler import ClaimedJob, Completed, Handler
from tailrace.jobs.models import Job

log = structlog.get_logger(__name__)

M = TypeVar("M")
COUNTED_BACKLOG = 2000
"""Waiting jobs of a destination that are counted, at most."""


class Probe:
    """The one message that is sent through a half-open breaker; others wait for its result."""

    def __init__(self, job: ClaimedJob) -> None:
        self.job = job
        self.arrived = False
        self.ended = asyncio.Event()


@dataclass(slots=True, eq=False)
class Delivery(Generic[M]):
    """A job's message on its way to a destination, and how it ended."""

    job: ClaimedJob
    destination: str
    message: M
    breaker_state: BreakerState
    probe: Probe | None = None
    result: DeliveryResult = NOT_TRIED


class DestinationHandler(Handler, Generic[M]):
    """Send messages, many at once, each to its job's destination.

    A destination that is slow or away takes its own places only. One that cannot be reached, or
    that answers with errors, is not sent anything for a while, by no worker; its jobs wait,
    charged nothing, and are due at once when it is back.
    """

    concurrency: ClassVar[int] = 100
    per_destination: ClassVar[int | None] = 4

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterable[tuple[ClaimedJob, M]]:
        """Yield the jobs that may be sent now, with their messages; set the outcome of the others.

        A plain function: it may use the database, for all of the jobs together.
        """
        raise NotImplementedError

    async def send(self, message: M) -> DeliveryResult:
        """Send one message; return what the reply means. It ends within the time limit."""
        raise NotImplementedError

    def destinations(self, job: ClaimedJob) -> Sequence[str]:
        """Return where its message may go, the preferred one first: it goes to the first that works
        and is not full. With more than one, write `send_to` instead of `send`."""
        return (self.destination(job),)

    async def send_to(self, destination: str, message: M) -> DeliveryResult:
        """Send one message to the destination that was chosen; as `send`."""
        return await self.send(message)

    def is_full(self, destination: str, chosen: int) -> bool:
        """Return whether others are better, if there are any: this process has enough messages for
        it, with those that were `chosen` just now."""
        return False

    def finish(self, deliveries: Sequence[Delivery[M]]) -> None:
        """Record what was sent; may replace the outcome of a job, which is set. A plain function.

        What it raises is logged: the messages have been sent.
        """

    def messages_per_second(self) -> float | None:
        """Return how many messages a destination is sent per second by all workers; None: any."""
        return None

    def shared_rate(self, message: M) -> tuple[str, float] | None:
        """Return the name of a limit that several destinations share, such as their host, and its
        messages per second; None: the message has no such limit."""
        return None

    def lane_of(self, destination: str) -> str | None:
        """Return the lane that has all jobs of this destination; None if there is no such lane, and
        all that wait are due when it is back."""
        return destination

    def breaker_name(self, destination: str) -> str:
        """Return the name of the destination's breaker, and of its token bucket."""
        return f"{self.name}:{destination}"

    def is_back(self, destination: str) -> None:
        """Make due what waits for the destination. A plain function."""
        release(self.name, self.lane_of(destination), by=f"{destination}, which is back")

    async def handle(self, job: ClaimedJob) -> Any:
        if delivery := await self._admitted(job):
            delivery.result = await self._sent(delivery)
            await self._record(delivery)
        if isinstance(job.outcome, Completed):
            return job.outcome.result
        raise job.outcome

    async def _sent(self, delivery: Delivery[M]) -> DeliveryResult:
        """Send it; through a half-open breaker only if another message has arrived."""
        probe, destination, message = delivery.probe, delivery.destination, delivery.message
        if probe is None:
            return await self.send_to(destination, message)
        if probe.job is not delivery.job:
            await probe.ended.wait()
            return await self.send_to(destination, message) if probe.arrived else NOT_TRIED
        try:
            result = await self.send_to(destination, message)
            probe.arrived = result.status is DeliveryStatus.SENT
            return result
        finally:
            probe.ended.set()

    async def _record(self, delivery: Delivery[M]) -> None:
        try:
            await self._ended(delivery)
        except Exception:
            if delivery.result.status is not DeliveryStatus.SENT:
                raise
            # It has been sent: an error of ours must not send it again.
            log.exception("destination.not_recorded", queue=self.name, job_id=delivery.job.id)
            delivery.job.complete(delivery.result.result)

    # --- what may be sent ---

    @cached_property
    def _admitted(self) -> "Together[ClaimedJob, Delivery[M] | None]":
        return Together(self._admit)

    def _admit(self, jobs: Sequence[ClaimedJob]) -> list[Delivery[M] | None]:
        """Return a delivery for each job that may be sent now; set the outcome of the others."""
        prepared = [(self.destinations(job), job, message) for job, message in self.prepare(jobs)]
        names = {name: self.breaker_name(name) for group, _, _ in prepared for name in group}
        known = breaker.check_all(names.values())
        states = {destination: known[name] for destination, name in names.items()}
        by_destination: dict[str, list[tuple[ClaimedJob, M]]] = defaultdict(list)
        for destinations, job, message in prepared:
            best = min(destinations, key=lambda each: self._rank(each, states, by_destination))
            by_destination[best].append((job, message))
        admitted: dict[ClaimedJob, Delivery[M]] = {}
        for destination, pairs in by_destination.items():
            state = states[destination]
            allowed = self._allowed(destination, state, pairs)
            pairs = [pair for pair in pairs if pair[0] in allowed]
            probe = Probe(pairs[0][0]) if pairs and state.probe else None
            for job, message in pairs:
                admitted[job] = Delivery(job, destination, message, state, probe)
        return [admitted.get(job) for job in jobs]

    def _rank(
        self,
        destination: str,
        states: Mapping[str, BreakerState],
        chosen: Mapping[str, Sequence[tuple[ClaimedJob, M]]],
    ) -> float:
        """Return how good the destination is for one more message: the less, the better. One that
        may be back gets one, as a probe."""
        state, count = states[destination], len(chosen.get(destination, ()))
        if state.wait:
            return 3 + state.wait
        if state.probe:
            return 2 if count else 0
        return 2 if self.is_full(destination, count) else 1

    def _allowed(
        self, destination: str, state: BreakerState, pairs: list[tuple[ClaimedJob, M]]
    ) -> set[ClaimedJob]:
        jobs = [job for job, _message in pairs]
        if state.wait:
            postpone(jobs, breaker_is_open(destination), state.wait)
            return set()
        for index, (job, message) in enumerate(pairs):
            if late := self._too_early(destination, message):
                waiting = Job.objects.pending().filter(handler=self.name, lane=job.lane)
                backlog = len(jobs) - index + len(waiting.values_list("id")[:COUNTED_BACKLOG])
                rate, name = late.bucket.rate, late.bucket.name.removeprefix(f"{self.name}:")
                for other in jobs[index:]:
                    # At a random time within the span that the destination's backlog takes.
                    seconds = late.wait + uniform(0, backlog / rate)  # noqa: S311
                    other.snooze(f"{name} is sent {rate:g} per second", seconds=seconds)
                return set(jobs[:index])
        return set(jobs)

    def _too_early(self, destination: str, message: M) -> rate_limit.Taken | None:
        """Take the message from the limits of its destination; return the one that refuses it."""
        rates = [(destination, self.messages_per_second()), self.shared_rate(message)]
        buckets = [
            rate_limit.Bucket(self.breaker_name(name), rate, max(rate, 1.0))
            for name, rate in filter(None, rates)
            if rate is not None
        ]
        taken = rate_limit.take_from_all(buckets) if buckets else []
        return max((each for each in taken if each.wait), key=lambda each: each.wait, default=None)

    # --- what became of it ---

    @cached_property
    def _ended(self) -> "Together[Delivery[M], None]":
        return Together(self._end)

    def _end(self, deliveries: Sequence[Delivery[M]]) -> list[None]:
        """Update the breakers, set the outcomes, and let the subclass record them."""
        groups: dict[tuple[str, bool], list[Delivery[M]]] = defaultdict(list)
        for delivery in deliveries:
            groups[delivery.destination, delivery.breaker_state.probe].append(delivery)
        for (destination, _probe), group in groups.items():
            back = apply_results(
                self.breaker_name(destination),
                max((each.breaker_state for each in group), key=lambda state: state.failures),
                [each.job for each in group],
                [each.result for each in group],
                elsewhere=len(self.destinations(group[0].job)) > 1,
            )
            if back:
                self.is_back(destination)
        try:
            self.finish(deliveries)
        except Exception:
            log.exception("destination.not_recorded", queue=self.name, count=len(deliveries))
        return [None] * len(deliveries)
