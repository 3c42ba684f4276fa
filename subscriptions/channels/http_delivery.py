"""Send the jobs of one batch over HTTP, all destinations side by side.

Destinations (an endpoint, a push service) share a queue and nothing else: each has a circuit
breaker (jobs.destinations) and a few POSTs at a time. While a destination is slow to answer, no
worker sends to it, and the worker that waits for it runs other jobs of the queue (nested_drain).
Only one worker at a time waits for the full 15 seconds; the others give up sooner, without
charging an attempt, so that they return to their other queues.
"""

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from events.publish import Recorded
from jobs import nested_drain
from jobs.backoff import Backoff
from jobs.destinations import breaker, rate_limit
from jobs.destinations.breaker import BreakerState
from jobs.destinations.delivery import (
    NOT_TRIED,
    SHORTEST_WAIT,
    DeliveryResult,
    DeliveryStatus,
    apply_results,
)
from jobs.handler import ClaimedJob, Handler
from jobs.models import Breaker
from net import http_client
from net.http_client import Client, Reply, Request
from subscriptions.channels.base import Channel

log = structlog.get_logger(__name__)

SLOW_SECONDS = 0.25
"""After so long without an answer the worker runs other jobs of the queue."""
POLL_SECONDS = 0.05
"""How often an empty queue is read while the worker waits."""
START_SECONDS = 1.5
"""After so long no POST of a batch is started; those already started get as long again."""
CONCURRENT_POSTS = 4
"""To one destination, by one worker."""
MAX_FAILURES_IN_A_ROW = 5
"""After so many error answers the rest of the batch is not sent."""
GIVEN_UP = "no answer in time, and other destinations were waiting"


class HttpChannel(Channel):
    """A channel that sends its jobs in batches: write `handle_batch`."""

    offered_like = "web"
    max_attempts = 6
    backoff = Backoff(30, 300, 1800, 7200)
    claim_timeout = 60
    time_limit = 120
    handle = Handler.handle  # not job by job


@dataclass(slots=True)
class HttpDelivery:
    """The POST of one job, and its reply; None if it was not sent."""

    job: ClaimedJob
    request: Request
    reply: Reply | None = None


@dataclass(slots=True)
class DestinationBatch:
    """The deliveries of one batch that go to one destination."""

    name: str
    """The name of its breaker."""
    breaker_state: BreakerState
    interpret: Callable[[Reply], DeliveryResult]
    """Returns the result that a reply means."""
    deliveries: list[HttpDelivery] = field(default_factory=list)
    concurrency: int = CONCURRENT_POSTS
    failures_in_a_row: int = 0
    stopped: bool = False
    held: bool = False
    """The breaker is open for all workers, because the destination is slow to answer."""

    @property
    def attempted(self) -> list[tuple[HttpDelivery, Reply]]:
        return [(delivery, delivery.reply) for delivery in self.deliveries if delivery.reply]

    def result(self, delivery: HttpDelivery) -> DeliveryResult:
        if delivery.reply is None:
            return NOT_TRIED
        if delivery.reply.cut:
            return DeliveryResult(DeliveryStatus.UNAVAILABLE, GIVEN_UP, charged=False)
        return self.interpret(delivery.reply)


def message_id(job_id: int, event: Recorded) -> str:
    """Return what receivers recognize a repeated message by: every attempt and replay has it."""
    identity = f"{job_id} {event.source} {event.source_id}"
    return f"msg_{job_id}_{hashlib.sha256(identity.encode()).hexdigest()[:12]}"


def breaker_states(names: Iterable[str]) -> dict[str, BreakerState]:
    """Return what the breakers of these destinations let through. One read if all are closed.

    A destination that this thread already waits for, in an outer batch, gets nothing.
    """
    names = set(names)
    sender: _Sender | None = getattr(_this_thread, "sender", None)
    slow = names & sender.unanswered() if sender else set()
    known = set(Breaker.objects.filter(name__in=names - slow).values_list("name", flat=True))
    states = {
        name: breaker.check(name) if name in known else BreakerState()
        for name in sorted(names - slow)
    }
    return states | dict.fromkeys(slow, BreakerState(wait=SHORTEST_WAIT))


def send(queue: str, batches: Sequence[DestinationBatch], *, public_only: bool = True) -> None:
    """POST the deliveries and set the reply of each that was sent."""
    if not batches:
        return
    with _sender(public_only) as sender:
        tasks = sender.start(batches)
        sender.wait(tasks, SLOW_SECONDS)
        may_wait = False
        while late := [task for task in tasks if not task.done()]:
            for task in late:
                task.hold_breaker()
            if not may_wait and any(task.age > 2 * START_SECONDS for task in late):
                # One of all workers may wait for a slow destination.
                rate = 1 / http_client.TOTAL_SECONDS
                may_wait = not rate_limit.take_token(f"{queue}:patience", rate, 1)
                for task in [] if may_wait else late:
                    task.task.cancel()
            if not _run_other_jobs(queue):
                sender.wait(late, POLL_SECONDS)


def set_outcomes(queue: str, batch: DestinationBatch, lane: str) -> list[DeliveryResult]:
    """Set the outcome of each job of the batch and update the breaker; return the results.

    If the destination is back, the jobs that wait in `lane` become due.
    """
    results = [batch.result(delivery) for delivery in batch.deliveries]
    jobs = [delivery.job for delivery in batch.deliveries]
    state = batch.breaker_state
    # Behind a held breaker the other workers wait for this result.
    apply_results(queue, lane, batch.name, state, jobs, results, opened=batch.held)
    return results


def result_of(reply: Reply) -> DeliveryResult:
    """Return what a reply means in HTTP: 408, 429, 5xx and network errors are tried again."""
    status = reply.status
    if reply.refused:
        return DeliveryResult(DeliveryStatus.REJECTED, reply.error)
    if status is None or reply.error:
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, reply.error or "no answer")
    if 200 <= status < 300:
        return DeliveryResult(DeliveryStatus.SENT, result={"status": status})
    reason = f"answered {status}"
    if status in (408, 429) or status >= 500:
        return DeliveryResult(DeliveryStatus.FAILED, reason, reply.retry_after)
    if 300 <= status < 400:
        reason += ": redirects are not followed; set the new URL"
    return DeliveryResult(DeliveryStatus.REJECTED, reason)


def _run_other_jobs(queue: str) -> int:
    """Run other jobs of the queue; return how many were settled. Never raises."""
    try:
        return nested_drain.drain_one_batch(queue)
    except Exception:
        log.exception("http_delivery.nested_drain_failed", queue=queue)
        return 0


class _Sender:
    """The loop and HTTP client of this thread; nested batches share them, so that none stops."""

    def __init__(self, public_only: bool) -> None:
        self.runner = asyncio.Runner()
        self.client = Client(public_only=public_only)
        self._tasks: list[_BatchTask] = []

    def start(self, batches: Sequence[DestinationBatch]) -> "list[_BatchTask]":
        self._tasks = [task for task in self._tasks if not task.done()]
        started = [_BatchTask(batch, self) for batch in batches]
        self._tasks += started
        return started

    def unanswered(self) -> set[str]:
        """Return the names of the destinations that have not answered yet."""
        return {task.name for task in self._tasks if not task.done()}

    def wait(self, tasks: Sequence["_BatchTask"], seconds: float) -> None:
        """Run the event loop until these tasks are done, or for so many seconds."""

        async def wait() -> None:
            done, _late = await asyncio.wait([task.task for task in tasks], timeout=seconds)
            for task in done:
                if not task.cancelled():
                    task.result()  # raises an error of our own code

        self.runner.run(wait())

    def close(self) -> None:
        try:
            self.runner.run(self.client.__aexit__())
        finally:
            self.runner.close()


_this_thread = threading.local()


@contextmanager
def _sender(public_only: bool) -> Iterator[_Sender]:
    outer: _Sender | None = getattr(_this_thread, "sender", None)
    if outer is not None:
        yield outer
        return
    _this_thread.sender = sender = _Sender(public_only)
    try:
        yield sender
    finally:
        _this_thread.sender = None
        sender.close()


class _BatchTask:
    """The POSTs to one destination, as an asyncio task."""

    def __init__(self, batch: DestinationBatch, sender: _Sender) -> None:
        self._batch = batch
        self._client = sender.client
        self._started = time.monotonic()
        self.name = batch.name
        self.task = sender.runner.get_loop().create_task(self._send())

    @property
    def age(self) -> float:
        return time.monotonic() - self._started

    def done(self) -> bool:
        return self.task.done()

    def hold_breaker(self) -> None:
        """Open the breaker for all workers once the destination has been slow for long."""
        if not self._batch.held and self.age > START_SECONDS:
            self._batch.held = True
            breaker.open_for(self.name, "is slow to answer", http_client.TOTAL_SECONDS)

    async def _send(self) -> None:
        """Send one delivery through a half-open breaker, and the others if it succeeds."""
        batch, deliveries = self._batch, self._batch.deliveries
        if batch.breaker_state.probe:
            await self._post(deliveries[0])
            if batch.result(deliveries[0]).status is not DeliveryStatus.SENT:
                return
            deliveries = deliveries[1:]
        semaphore = asyncio.Semaphore(batch.concurrency)

        async def post(delivery: HttpDelivery) -> None:
            async with semaphore:
                await self._post(delivery)

        await asyncio.gather(*map(post, deliveries))

    async def _post(self, delivery: HttpDelivery) -> None:
        batch = self._batch
        if batch.stopped or self.age > START_SECONDS:
            return
        started = time.monotonic()
        try:
            delivery.reply = await self._client.post(delivery.request)
        except asyncio.CancelledError:
            milliseconds = round((time.monotonic() - started) * 1000)
            delivery.reply = Reply(error=GIVEN_UP, cut=True, milliseconds=milliseconds)
            raise
        result = batch.interpret(delivery.reply)
        failed = result.status is DeliveryStatus.FAILED
        batch.failures_in_a_row = batch.failures_in_a_row + 1 if failed else 0
        if (
            result.status is DeliveryStatus.UNAVAILABLE
            or result.after is not None
            or batch.failures_in_a_row >= MAX_FAILURES_IN_A_ROW
        ):
            batch.stopped = True
