"""courier: carry the jobs of one batch to their destinations, all of these side by side.

Destinations (an endpoint, a push service) share a queue and nothing else: each has a breaker
(jobs/breaker.py) and a few POSTs at once. While one of them is slow to answer, all workers leave it
alone, and the worker that waits for it goes on with the queue (jobs/meanwhile.py). Of all workers
one at a time waits to the end of the 15 seconds; the others give it up sooner, uncharged, so that
they come back to their other queues.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from jobs import breaker, bucket, destination, meanwhile
from jobs.breaker import Gate
from jobs.claimed import ClaimedJob
from jobs.destination import UNTRIED, Fate, Verdict
from jobs.models import Breaker
from subscriptions import sending
from subscriptions.sending import Client, Reply, Request

log = structlog.get_logger(__name__)

SLOW = 0.25
"""Seconds without an answer after which the worker goes on with the queue."""
LOOK = 0.05
"""Seconds from one look at the queue to the next, while it is empty."""
PATIENCE = 1.5
"""Seconds after which no POST of a batch is begun; those under way have as long once more."""
AT_ONCE = 4
"""POSTs to one destination, by one worker."""
FAILURES_IN_A_ROW = 5
"""After so many error answers the rest of a batch is spared."""
GIVEN_UP = "gave no answer in time, while others waited"


@dataclass(slots=True)
class Parcel:
    """One job's POST, and what came of it; no reply: it was not tried."""

    job: ClaimedJob
    request: Request
    reply: Reply | None = None


@dataclass(slots=True)
class Share:
    """What one destination gets of a batch."""

    name: str
    """Its breaker's."""
    gate: Gate
    judge: Callable[[Reply], Verdict]
    """Says what a reply means."""
    parcels: list[Parcel] = field(default_factory=list)
    at_once: int = AT_ONCE
    failures: int = 0
    stopped: bool = False
    held: bool = False
    """All workers leave it alone, since it is slow to answer us."""

    @property
    def tried(self) -> list[tuple[Parcel, Reply]]:
        return [(parcel, parcel.reply) for parcel in self.parcels if parcel.reply is not None]


def gates(names: Iterable[str]) -> dict[str, Gate]:
    """Ask the breakers of these destinations: one read for all that are well.

    Nothing goes to one that this very worker waits for, in a batch around this one.
    """
    wanted = set(names)
    found: _Flight | None = getattr(_here, "flight", None)
    slow = wanted & set(found.waited_for()) if found else set()
    known = set(Breaker.objects.filter(name__in=wanted - slow).values_list("name", flat=True))
    asked = {
        name: breaker.gate(name) if name in known else Gate() for name in sorted(wanted - slow)
    }
    return asked | dict.fromkeys(slow, Gate(wait=destination.SOON))


def carry(queue: str, shares: Sequence[Share], *, guarded: bool = True) -> None:
    """POST the parcels and note the reply of each that was tried."""
    if not shares:
        return
    with _flight(guarded) as flight:
        trips = flight.begin(shares)
        flight.wait(trips, SLOW)
        may_wait = False
        while late := [trip for trip in trips if not trip.task.done()]:
            for trip in late:
                trip.hold()
            if not may_wait and any(trip.age > 2 * PATIENCE for trip in late):
                may_wait = _may_wait(queue)
                for trip in [] if may_wait else late:
                    trip.give_up()
            if not _serve(queue):
                flight.wait(late, LOOK)


def settle(queue: str, share: Share, lane: str = "") -> list[Verdict]:
    """Say of each job of the share how it ended, and tell the breaker; return the verdicts.

    What waits in `lane` for a destination that is back becomes due.
    """
    verdicts = [_verdict(share, parcel) for parcel in share.parcels]
    gate = Gate(one=True) if share.held else share.gate  # others wait for what we make of it
    wait = destination.tell_breaker(share.name, gate, verdicts)
    for place, parcel in enumerate(share.parcels):
        if parcel.reply is not None and parcel.reply.cut:
            verdicts[place] = Verdict(Fate.UNTRIED, GIVEN_UP)  # it is not charged
    destination.settle([parcel.job for parcel in share.parcels], verdicts, share.gate, wait)
    if gate.one and not wait and lane:
        destination.release(queue, lane, by=f"{share.name}, which is back")
    return verdicts


def usual(reply: Reply) -> Verdict:
    """Judge a reply as HTTP has it: 408, 429, 5xx and a broken network may do later."""
    status = reply.status
    if reply.refused:
        return Verdict(Fate.REFUSED, reply.error)
    if status is None or reply.error:
        return Verdict(Fate.DOWN, reply.error or "no answer")
    if 200 <= status < 300:
        return Verdict(Fate.SENT, result={"status": status})
    reason = f"answered {status}"
    if status in (408, 429) or status >= 500:
        return Verdict(Fate.FAILED, reason, reply.retry_after)
    if 300 <= status < 400:
        reason += ": redirects are not followed, set the URL it names"
    return Verdict(Fate.REFUSED, reason)


def _verdict(share: Share, parcel: Parcel) -> Verdict:
    if parcel.reply is None:
        return UNTRIED
    return Verdict(Fate.DOWN, GIVEN_UP) if parcel.reply.cut else share.judge(parcel.reply)


def _may_wait(queue: str) -> bool:
    """Win the right to wait for a destination that hangs: one batch of all workers has it."""
    return not bucket.take(f"{queue}:patience", 1 / sending.TOTAL_SECONDS, 1)


def _serve(queue: str) -> int:
    """Go on with the queue; return how many jobs that settled. Never raises."""
    try:
        return meanwhile.serve(queue)
    except Exception:
        log.exception("courier.meanwhile", queue=queue)
        return 0


class _Flight:
    """What of this thread is under way: one event loop and one client, for batches within batches
    too, so that none of them stands still while another waits."""

    def __init__(self, guarded: bool) -> None:
        self.runner = asyncio.Runner()
        self.client = self.runner.run(_client(guarded))
        self._trips: list[_Trip] = []

    def begin(self, shares: Sequence[Share]) -> "list[_Trip]":
        """Send what these destinations get."""
        self._trips = [trip for trip in self._trips if not trip.task.done()]
        begun = [_Trip(share, self) for share in shares]
        self._trips += begun
        return begun

    def waited_for(self) -> list[str]:
        """Return the names of the destinations that have not answered yet."""
        return [trip.name for trip in self._trips if not trip.task.done()]

    def wait(self, trips: Sequence["_Trip"], seconds: float) -> None:
        """Let everything go on until these trips are over, for so long at most."""
        tasks = [trip.task for trip in trips]
        self.runner.run(_wait(tasks, seconds))

    def close(self) -> None:
        try:
            self.runner.run(self.client.__aexit__())
        finally:
            self.runner.close()


async def _client(guarded: bool) -> Client:
    return await Client(guarded=guarded).__aenter__()


async def _wait(tasks: "Sequence[asyncio.Task[None]]", seconds: float) -> None:
    done, _late = await asyncio.wait(tasks, timeout=seconds)
    for task in done:
        if not task.cancelled():
            task.result()  # raises what went wrong in our own code


_here = threading.local()


@contextmanager
def _flight(guarded: bool) -> Iterator[_Flight]:
    found: _Flight | None = getattr(_here, "flight", None)
    if found is not None:
        yield found
        return
    _here.flight = made = _Flight(guarded)
    try:
        yield made
    finally:
        _here.flight = None
        made.close()


class _Trip:
    """The POSTs to one destination, as a task of the flight."""

    def __init__(self, share: Share, flight: _Flight) -> None:
        self._share = share
        self._client = flight.client
        self._began = time.monotonic()
        self.name = share.name
        self.task = flight.runner.get_loop().create_task(self._serve())

    @property
    def age(self) -> float:
        return time.monotonic() - self._began

    def hold(self) -> None:
        """Have all workers leave the destination alone, once it has been slow for long."""
        if not self._share.held and self.age > PATIENCE:
            self._share.held = True
            breaker.hold(self._share.name, "is slow to answer", sending.TOTAL_SECONDS)

    def give_up(self) -> None:
        self.task.cancel()

    async def _serve(self) -> None:
        """Through a half-open breaker goes one, and the others if it arrives."""
        share, parcels = self._share, self._share.parcels
        if share.gate.one:
            await self._post(parcels[0])
            if _verdict(share, parcels[0]).fate is not Fate.SENT:
                return
            parcels = parcels[1:]
        turns = asyncio.Semaphore(share.at_once)

        async def in_turn(parcel: Parcel) -> None:
            async with turns:
                await self._post(parcel)

        await asyncio.gather(*map(in_turn, parcels))

    async def _post(self, parcel: Parcel) -> None:
        share = self._share
        if share.stopped or self.age > PATIENCE:
            return
        began = time.monotonic()
        try:
            parcel.reply = await self._client.post(parcel.request)
        except asyncio.CancelledError:
            passed = round((time.monotonic() - began) * 1000)
            parcel.reply = Reply(error=GIVEN_UP, cut=True, milliseconds=passed)
            raise
        verdict = share.judge(parcel.reply)
        share.failures = share.failures + 1 if verdict.fate is Fate.FAILED else 0
        if (
            verdict.fate is Fate.DOWN
            or verdict.after is not None
            or share.failures >= FAILURES_IN_A_ROW
        ):
            share.stopped = True
