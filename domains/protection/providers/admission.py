"""Who may ask a provider next: a queue in each process, and a budget that all processes share."""

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from random import uniform
from weakref import WeakKeyDictionary

from tailrace.domains.protection.providers.provider import Provider, SourceAway, SourceBusy
from tailrace.jobs.destinations import breaker, rate_limit
from tailrace.jobs.destinations.breaker import BreakerState
from tailrace.jobs.destinations.together import Together

SHARE = 0.94
"""Of the provider's limit; with what comes late and the burst it is all of it in each second."""
BURST_SECONDS = 0.02
"""So much of the limit may be used at one moment, but one request in any case."""
LATE_SECONDS = 0.03
"""Of several places that are later than this one is used: all of them would be too many."""
AHEAD_SECONDS = 0.2
"""Places are taken so long before they may be used, so that a busy process loses none. A pause and
an open breaker reach other processes as much later."""
SHORTEST_SLEEP, LONGEST_SLEEP = 0.05, 5.0
"""Seconds between two looks at the budget."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """One who wants to ask, until `ends_at` by time.monotonic()."""

    ends_at: float
    place: "asyncio.Future[BreakerState]"


async def admission(provider: Provider, ends_at: float) -> BreakerState:
    """Wait until the provider may be asked, in turn; return the state of its breaker.

    SourceAway if its breaker is open, SourceBusy if there is no place before `ends_at`.
    """
    loop = asyncio.get_running_loop()
    lines = _lines.setdefault(loop, {})
    one = _Waiting(ends_at, loop.create_future())
    line = lines.get(provider.key)
    if line and line.waiting:
        line.waiting.append(one)
    else:
        line = lines[provider.key] = _Line(provider)
        line.waiting.append(one)
        task = loop.create_task(_work_off(line), context=contextvars.Context())
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
    return await one.place


class _Line:
    """Those of an event loop who wait for a provider, and the places that they will have."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.waiting = deque[_Waiting]()
        self.coming = 0
        """Places that are taken, but may not be used yet."""
        self.given_at = 0.0

    def wanted(self) -> int:
        """Drop those who have given up; return how many others have no place coming."""
        if any(one.place.done() for one in self.waiting):
            others = [one for one in self.waiting if not one.place.done()]
            self.waiting.clear()
            self.waiting.extend(others)
        return max(len(self.waiting) - self.coming, 0)

    def give_at(self, at: float, state: BreakerState) -> None:
        """Give a place to the first who waits then, by time.monotonic()."""
        self.coming += 1
        wait = max(at - time.monotonic(), 0.0)
        asyncio.get_running_loop().call_later(wait, self._give, at, state)

    def _give(self, at: float, state: BreakerState) -> None:
        self.coming -= 1
        now = time.monotonic()
        if now > at + LATE_SECONDS and now < self.given_at + 1 / self.provider.per_second:
            return
        self.given_at = now
        while self.waiting:
            one = self.waiting.popleft()
            if not one.place.done():
                one.place.set_result(state)
                return

    def give_probe(self, state: BreakerState) -> None:
        """Let the first one ask; the others wait for what becomes of it."""
        self.waiting.popleft().place.set_result(state)
        self.end(SourceAway(self.provider.name, "is being tried", 1.0, was_asked=False))

    def refuse_late(self, next_at: float) -> None:
        """End the waiting of those who have no place coming, if their time is over before
        `next_at`."""
        for one in islice(self.waiting, self.coming, None):
            if next_at > one.ends_at and not one.place.done():
                wait = max(next_at - time.monotonic(), 0.0)
                one.place.set_exception(SourceBusy(self.provider.name, wait))

    def end(self, error: Exception) -> None:
        """End the waiting of all."""
        for one in self.waiting:
            if not one.place.done():
                one.place.set_exception(error)
        self.waiting.clear()


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Line]] = WeakKeyDictionary()
_tasks: set["asyncio.Task[None]"] = set()


async def _work_off(line: _Line) -> None:
    """Give places to those who wait until nobody does."""
    state: BreakerState | None = None
    await asyncio.sleep(0)
    while (wanted := line.wanted()) or line.waiting:
        seconds = SHORTEST_SLEEP
        if wanted:
            try:
                state, times, next_at = await _taken((line.provider, wanted, state))
            except Exception as error:
                line.end(error)
                return
            if state.wait:
                reason = "its circuit breaker is open"
                line.end(SourceAway(line.provider.name, reason, state.wait, was_asked=False))
                return
            if times and state.probe:
                line.give_probe(state)
                return
            for at in times:
                line.give_at(at, state)
            if len(times) < wanted:
                line.refuse_late(next_at)
                seconds = (next_at - AHEAD_SECONDS - time.monotonic()) * uniform(1, 1.2)  # noqa: S311
        await asyncio.sleep(min(max(seconds, SHORTEST_SLEEP), LONGEST_SLEEP))


def _take(
    requests: Sequence[tuple[Provider, int, BreakerState | None]],
) -> list[tuple[BreakerState, Sequence[float], float]]:
    return [_take_places(*request) for request in requests]


_taken = Together(_take)


def _take_places(
    provider: Provider, wanted: int, held: BreakerState | None
) -> tuple[BreakerState, Sequence[float], float]:
    """Return the state of the breaker, when each of at most `wanted` may ask by time.monotonic(),
    and when the next after them. `held`: the probe that was taken before, and has had no place
    since."""
    state = held if held is not None and held.probe else breaker.check(provider.key)
    if state.wait:
        return state, (), 0.0
    rate = provider.per_second * SHARE
    burst = provider.per_second * BURST_SECONDS
    wanted, ahead = (1, 0.0) if state.probe else (wanted, AHEAD_SECONDS)
    now = time.monotonic()
    waits, after = rate_limit.reserve_tokens(provider.budget, rate, burst, ahead, wanted)
    return state, [now + wait for wait in waits], now + after


def _pause(pauses: Sequence[tuple[Provider, float]]) -> list[None]:
    """Let nobody ask the provider for so long, in any process: it answered 429."""
    for provider, seconds in pauses:
        rate_limit.pause(provider.budget, provider.per_second * SHARE, seconds)
    return [None] * len(pauses)


pause = Together(_pause)
