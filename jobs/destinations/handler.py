"""The base class of handlers that send each job's message to a destination over the network.

It applies the circuit breaker and the rate limit of each destination, sets the outcomes of jobs
from the results, and makes jobs due when their destination is available again. A subclass creates
the messages (`prepare`), sends them, and returns a DeliveryResult for the reply (`send`).
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
"""Maximum number of waiting jobs of a destination that are counted."""


class Probe:
    """The one message that is sent while a breaker is half-open. Others wait for its result."""

    def __init__(self, job: ClaimedJob) -> None:
        self.job = job
        self.succeeded = False
        self.ended = asyncio.Event()


@dataclass(slots=True, eq=False)
class Delivery(Generic[M]):
    """A job's message to a destination, and the result of sending it."""

    job: ClaimedJob
    destination: str
    message: M
    breaker_state: BreakerState
    probe: Probe | None = None
    result: DeliveryResult = NOT_TRIED


class DestinationHandler(Handler, Generic[M]):
    """Send messages, many at once, each to the destination of its job.

    A slow destination uses at most `per_destination` of the calls in flight. If a destination
    cannot be reached or answers with errors, all workers stop sending to it for a while. Its jobs
    wait without a counted attempt, and are due as soon as it is available again.
    """

    concurrency: ClassVar[int] = 100
    per_destination: ClassVar[int | None] = 4

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterable[tuple[ClaimedJob, M]]:
        """Yield the jobs to send now, with their messages; set the outcome of the other jobs. A
        plain function, called for many jobs at once: it may use the database."""
        raise NotImplementedError

    async def send(self, message: M) -> DeliveryResult:
        """Send one message and return the result. It is cancelled at the time limit."""
        raise NotImplementedError

    def destinations(self, job: ClaimedJob) -> Sequence[str]:
        """Return the possible destinations of the message, the preferred one first. The first that
        works and is not full gets it. If there are several, override `send_to`, not `send`."""
        return (self.destination(job),)

    async def send_to(self, destination: str, message: M) -> DeliveryResult:
        """Send one message to the chosen destination and return the result."""
        return await self.send(message)

    def is_full(self, destination: str, chosen: int) -> bool:
        """Return whether messages should go to other destinations if possible. `chosen` is the
        number of messages that this process is about to send to this one."""
        return False

    def finish(self, deliveries: Sequence[Delivery[M]]) -> None:
        """Record the deliveries. The outcomes of the jobs are set and may be replaced. A plain
        function. An exception is only logged, since the messages have been sent."""

    def messages_per_second(self) -> float | None:
        """Return how many messages per second all workers may send to a destination, or None."""
        return None

    def shared_rate(self, message: M) -> tuple[str, float] | None:
        """Return a rate limit that several destinations share, or None: its name, such as their
        host, and its messages per second."""
        return None

    def lane_of(self, destination: str) -> str | None:
        """Return the lane with all jobs of this destination. With None, all waiting jobs become due
        when the destination is available again."""
        return destination

    def breaker_name(self, destination: str) -> str:
        """Return the name of the breaker and of the token bucket of the destination."""
        return f"{self.name}:{destination}"

    def is_back(self, destination: str) -> None:
        """Make the jobs that wait for the destination due. A plain function."""
        release(self.name, self.lane_of(destination), by=f"{destination}, which is back")

    async def handle(self, job: ClaimedJob) -> Any:
        if delivery := await self._admitted(job):
            delivery.result = await self._sent(delivery)
            await self._record(delivery)
        if isinstance(job.outcome, Completed):
            return job.outcome.result
        raise job.outcome

    async def _sent(self, delivery: Delivery[M]) -> DeliveryResult:
        """Send the message. While the breaker is half-open, only the probe is sent at once; the
        other messages are sent if the probe succeeds."""
        probe, destination, message = delivery.probe, delivery.destination, delivery.message
        if probe is None:
            return await self.send_to(destination, message)
        if probe.job is not delivery.job:
            await probe.ended.wait()
            return await self.send_to(destination, message) if probe.succeeded else NOT_TRIED
        try:
            result = await self.send_to(destination, message)
            probe.succeeded = result.status is DeliveryStatus.SENT
            return result
        finally:
            probe.ended.set()

    async def _record(self, delivery: Delivery[M]) -> None:
        try:
            await self._ended(delivery)
        except Exception:
            if delivery.result.status is not DeliveryStatus.SENT:
                raise
            # The message has been sent: an error in recording it must not send it again.
            log.exception("destination.not_recorded", queue=self.name, job_id=delivery.job.id)
            delivery.job.complete(delivery.result.result)

    # --- before sending ---

    @cached_property
    def _admitted(self) -> "Together[ClaimedJob, Delivery[M] | None]":
        return Together(self._admit)

    def _admit(self, jobs: Sequence[ClaimedJob]) -> list[Delivery[M] | None]:
        """Return a delivery for each job to send now, else None; set the outcome of the others."""
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
        """Return the rank of the destination for one more message; the lowest is the best. A probe
        of a half-open destination comes first."""
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
            if limit := self._refusing_limit(destination, message):
                waiting = Job.objects.pending().filter(handler=self.name, lane=job.lane)
                backlog = len(jobs) - index + len(waiting.values_list("id")[:COUNTED_BACKLOG])
                rate, name = limit.bucket.rate, limit.bucket.name.removeprefix(f"{self.name}:")
                reason = f"{name} gets at most {rate:g} messages per second"
                for other in jobs[index:]:
                    # At a random time within the time that it takes to send the backlog.
                    seconds = limit.wait + uniform(0, backlog / rate)  # noqa: S311
                    other.snooze(reason, seconds=seconds)
                return set(jobs[:index])
        return set(jobs)

    def _refusing_limit(self, destination: str, message: M) -> rate_limit.Taken | None:
        """Take a token for the message from each rate limit of its destination. Return the limit
        with the longest wait if any has no token."""
        rates = [(destination, self.messages_per_second()), self.shared_rate(message)]
        buckets = [
            rate_limit.Bucket(self.breaker_name(name), rate, max(rate, 1.0))
            for name, rate in filter(None, rates)
            if rate is not None
        ]
        taken = rate_limit.take_from_all(buckets) if buckets else []
        return max((each for each in taken if each.wait), key=lambda each: each.wait, default=None)

    # --- after sending ---

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
