"""Admission to providers: a waiting line in each process, and a budget that all processes share."""

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from random import uniform
from weakref import WeakKeyDictionary

from tailrace.domains.protection.services.providers.provider import Provider
from tailrace.jobs.destinations import breaker, rate_limit
from tailrace.jobs.destinations.breaker import BreakerState
from tailrace.jobs.destinations.request_errors import RateLimited, Unavailable
from tailrace.jobs.destinations.together import Together

SHARE = 0.94
"""The share of the provider's limit that is used. With late requests and the burst, the limit is
reached in each second."""
BURST_SECONDS = 0.02
"""Seconds of the limit that may be used at one moment, but at least one request."""
LATE_SECONDS = 0.03
"""A token that is more than this late is dropped if another one has just been used, so that late
tokens do not add up to too many requests."""
AHEAD_SECONDS = 0.2
"""Tokens are reserved this long before they can be used, so that a busy process loses none. A pause
and an open breaker reach other processes this much later."""
SHORTEST_SLEEP, LONGEST_SLEEP = 0.05, 5.0
"""Seconds between two checks of the budget."""


@dataclass(slots=True, eq=False)
class _Caller:
    """A caller that waits for admission until `ends_at`, a time of time.monotonic()."""

    ends_at: float
    admitted: "asyncio.Future[BreakerState]"


async def admission(provider: Provider, ends_at: float) -> BreakerState:
    """Wait in line until the provider may be queried; return the state of its breaker.

    Raises Unavailable if the breaker is open, RateLimited if no token is available by `ends_at`.
    """
    loop = asyncio.get_running_loop()
    lines = _waiting_lines.setdefault(loop, {})
    caller = _Caller(ends_at, loop.create_future())
    line = lines.get(provider.key)
    if line and line.waiting:
        line.waiting.append(caller)
    else:
        line = lines[provider.key] = _WaitingLine(provider)
        line.waiting.append(caller)
        task = loop.create_task(_serve(line), context=contextvars.Context())
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
    return await caller.admitted


class _WaitingLine:
    """The callers in an event loop that wait for a provider, and the tokens reserved for them."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.waiting = deque[_Caller]()
        self.reserved = 0
        """Tokens that are reserved, but cannot be used yet."""
        self.given_at = 0.0

    def count_without_token(self) -> int:
        """Drop the callers that have given up; return how many others have no reserved token."""
        if any(caller.admitted.done() for caller in self.waiting):
            waiting = [caller for caller in self.waiting if not caller.admitted.done()]
            self.waiting.clear()
            self.waiting.extend(waiting)
        return max(len(self.waiting) - self.reserved, 0)

    def give_at(self, at: float, state: BreakerState) -> None:
        """Give a token to the first caller in line at this time of time.monotonic()."""
        self.reserved += 1
        wait = max(at - time.monotonic(), 0.0)
        asyncio.get_running_loop().call_later(wait, self._give, at, state)

    def _give(self, at: float, state: BreakerState) -> None:
        self.reserved -= 1
        now = time.monotonic()
        if now > at + LATE_SECONDS and now < self.given_at + 1 / self.provider.per_second:
            return
        self.given_at = now
        while self.waiting:
            caller = self.waiting.popleft()
            if not caller.admitted.done():
                caller.admitted.set_result(state)
                return

    def give_probe(self, state: BreakerState) -> None:
        """Admit the first caller as a probe of the breaker, and refuse the others."""
        self.waiting.popleft().admitted.set_result(state)
        self.end(_breaker_open(self.provider, "its circuit breaker is half-open", 1.0))

    def refuse_late(self, next_at: float) -> None:
        """Refuse the callers without a reserved token whose time ends before `next_at`."""
        for caller in islice(self.waiting, self.reserved, None):
            if next_at > caller.ends_at and not caller.admitted.done():
                wait = max(next_at - time.monotonic(), 0.0)
                reason, name = "its rate limit is used up", self.provider.name
                caller.admitted.set_exception(RateLimited(reason, wait, destination=name))

    def end(self, error: Exception) -> None:
        """Refuse all callers with this error."""
        for caller in self.waiting:
            if not caller.admitted.done():
                caller.admitted.set_exception(error)
        self.waiting.clear()


_waiting_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _WaitingLine]] = (
    WeakKeyDictionary()
)
_tasks: set["asyncio.Task[None]"] = set()


def _breaker_open(provider: Provider, reason: str, wait: float) -> Unavailable:
    return Unavailable(reason, wait, destination=provider.name, was_asked=False)


async def _serve(line: _WaitingLine) -> None:
    """Give tokens to the callers in line until none is left."""
    state: BreakerState | None = None
    await asyncio.sleep(0)
    while (wanted := line.count_without_token()) or line.waiting:
        seconds = SHORTEST_SLEEP
        if wanted:
            try:
                state, times, next_at = await _reserve((line.provider, wanted, state))
            except Exception as error:
                line.end(error)
                return
            if state.wait:
                line.end(_breaker_open(line.provider, "its circuit breaker is open", state.wait))
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


def _reserve_all(
    requests: Sequence[tuple[Provider, int, BreakerState | None]],
) -> list[tuple[BreakerState, Sequence[float], float]]:
    return [_reserve_tokens(*request) for request in requests]


_reserve = Together(_reserve_all)


def _reserve_tokens(
    provider: Provider, wanted: int, probe_state: BreakerState | None
) -> tuple[BreakerState, Sequence[float], float]:
    """Return the state of the breaker, the times of at most `wanted` tokens, and the time of the
    next token after them. All times are of time.monotonic().

    `probe_state`: the state with a probe that was taken before and has had no token since.
    """
    state = probe_state
    if state is None or not state.probe:
        state = breaker.check(provider.key)
    if state.wait:
        return state, (), 0.0
    rate = provider.per_second * SHARE
    burst = provider.per_second * BURST_SECONDS
    wanted, ahead = (1, 0.0) if state.probe else (wanted, AHEAD_SECONDS)
    now = time.monotonic()
    waits, after = rate_limit.reserve_tokens(provider.budget, rate, burst, ahead, wanted)
    return state, [now + wait for wait in waits], now + after


def _pause(pauses: Sequence[tuple[Provider, float]]) -> list[None]:
    """Stop requests to the providers in all processes for some seconds, after an answer 429."""
    for provider, seconds in pauses:
        rate_limit.pause(provider.budget, provider.per_second * SHARE, seconds)
    return [None] * len(pauses)


pause = Together(_pause)
