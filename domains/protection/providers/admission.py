"""Who may ask a provider next: a queue in each process, and a budget that all processes share."""

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import uniform
from weakref import WeakKeyDictionary

from domains.protection.providers.provider import Provider, SourceAway, SourceBusy
from jobs.destinations import breaker, rate_limit
from jobs.destinations.breaker import BreakerState
from jobs.destinations.together import Together

SHARE = 0.95
"""Of the provider's limit; with the burst it is all of it in each second, by any clock."""
BURST_SECONDS = 0.05
"""So much of the limit may be used at one moment, but one request in any case."""
SHORTEST_SLEEP, LONGEST_SLEEP = 0.02, 5.0
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
    queues = _queues.setdefault(loop, {})
    one = _Waiting(ends_at, loop.create_future())
    if queue := queues.get(provider.key):
        queue.append(one)
    else:
        queues[provider.key] = queue = deque([one])
        task = loop.create_task(_work_off(provider, queue), context=contextvars.Context())
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
    return await one.place


_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, deque[_Waiting]]]
_queues = WeakKeyDictionary()
_tasks: set["asyncio.Task[None]"] = set()


async def _work_off(provider: Provider, queue: deque[_Waiting]) -> None:
    """Give places to those who wait until nobody does."""
    state: BreakerState | None = None
    await asyncio.sleep(0)
    while _still_waiting(queue):
        try:
            state, places, wait = await _taken((provider, len(queue), state))
        except Exception as error:
            _end_all(queue, error)
            return
        if state.wait:
            reason = "its circuit breaker is open"
            _end_all(queue, SourceAway(provider.name, reason, state.wait, was_asked=False))
            return
        for _ in range(places):
            one = queue.popleft()
            if not one.place.done():
                one.place.set_result(state)
        if places and state.probe:  # the others wait for what becomes of it
            _end_all(queue, SourceAway(provider.name, "is being tried", 1.0, was_asked=False))
            return
        if places:
            state = None
        if wait:
            _refuse_late(provider, queue, wait)
            await asyncio.sleep(min(wait * uniform(1, 1.2), LONGEST_SLEEP))  # noqa: S311


def _take(
    requests: Sequence[tuple[Provider, int, BreakerState | None]],
) -> list[tuple[BreakerState, int, float]]:
    return [_take_places(*request) for request in requests]


_taken = Together(_take)


def _take_places(
    provider: Provider, wanted: int, held: BreakerState | None
) -> tuple[BreakerState, int, float]:
    """Return the state of the breaker, how many of `wanted` may ask now, and how long the next has
    to wait. `held`: the probe that was taken before, and has had no place since."""
    state = held if held is not None and held.probe else breaker.check(provider.key)
    rate = provider.per_second * SHARE
    burst = max(provider.per_second * BURST_SECONDS, 1.0)
    if state.wait:
        return state, 0, 0.0
    wanted = 1 if state.probe else wanted
    places, wait = rate_limit.take_tokens(provider.budget, rate, burst, wanted)
    if 0 < wait <= rate_limit.SHORTEST_WAIT:  # before the bucket is full
        wait = max(min(burst / rate / 2, wait), SHORTEST_SLEEP)
    return state, places, wait


def _pause(pauses: Sequence[tuple[Provider, float]]) -> list[None]:
    """Let nobody ask the provider for so long, in any process: it answered 429."""
    for provider, seconds in pauses:
        rate_limit.pause(provider.budget, provider.per_second * SHARE, seconds)
    return [None] * len(pauses)


pause = Together(_pause)


def _still_waiting(queue: deque[_Waiting]) -> bool:
    """Drop those who have given up; return whether there are others."""
    if any(one.place.done() for one in queue):
        others = [one for one in queue if not one.place.done()]
        queue.clear()
        queue.extend(others)
    return bool(queue)


def _refuse_late(provider: Provider, queue: deque[_Waiting], wait: float) -> None:
    """End the waiting of those whose time is over before there may be a place."""
    begins_at = time.monotonic() + wait
    for one in queue:
        if begins_at > one.ends_at and not one.place.done():
            one.place.set_exception(SourceBusy(provider.name, wait))


def _end_all(queue: deque[_Waiting], error: Exception) -> None:
    for one in queue:
        if not one.place.done():
            one.place.set_exception(error)
    queue.clear()
