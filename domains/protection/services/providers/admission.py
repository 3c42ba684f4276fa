"""Admission to providers: a rate limit and a circuit breaker that all processes share."""

import asyncio
import time
from collections.abc import Sequence
from itertools import count, groupby
from typing import NamedTuple

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
"""Seconds between two requests for a token."""
_BESIDE_PROBE = BreakerState(wait=1.0)
"""For callers that ask at the same time as the one that probes the breaker."""

_numbers = count()
_used_at: dict[str, float] = {}
"""When a token of each provider was last used in this process, by time.monotonic()."""


class _Caller(NamedTuple):
    provider: Provider
    number: int
    """Callers get their tokens in the order of their numbers."""
    probe: BreakerState | None
    """The state of the breaker, if the caller is its probe and waits for a token."""


class _Turn(NamedTuple):
    state: BreakerState
    at: float | None = None
    """The time of time.monotonic() from which the caller's token can be used, if it has one."""
    next_at: float = 0.0
    """The same for the first token that no caller has yet."""


async def admission(provider: Provider, ends_at: float) -> BreakerState:
    """Wait until the provider may be queried; return the state of its breaker.

    Raises Unavailable if the breaker is open, RateLimited if no token is available by `ends_at`, a
    time of time.monotonic().
    """
    number, probe = next(_numbers), None
    while True:
        state, at, next_at = await _reserve(_Caller(provider, number, probe))
        now = time.monotonic()
        if state.wait:
            reason = "its circuit breaker is open"
            raise Unavailable(reason, state.wait, destination=provider.name, was_asked=False)
        if at is not None:
            await asyncio.sleep(at - now)
            if _may_use(provider, at):
                return state
        elif next_at > ends_at:
            wait = max(next_at - now, 0.0)
            raise RateLimited("its rate limit is used up", wait, destination=provider.name)
        else:
            wait = next_at - AHEAD_SECONDS - now
            await asyncio.sleep(min(max(wait, SHORTEST_SLEEP), LONGEST_SLEEP))
        probe = state if state.probe else None


def _may_use(provider: Provider, at: float) -> bool:
    now = time.monotonic()
    apart = min(1 / provider.per_second, AHEAD_SECONDS)
    if now > at + LATE_SECONDS and now < _used_at.get(provider.key, 0.0) + apart:
        return False
    _used_at[provider.key] = now
    return True


def _reserve_all(callers: Sequence[_Caller]) -> list[_Turn]:
    turns: dict[int, _Turn] = {}
    in_order = sorted(callers, key=lambda each: (each.provider.key, not each.probe, each.number))
    for _key, group in groupby(in_order, key=lambda each: each.provider.key):
        of_provider = list(group)
        numbers = [each.number for each in of_provider]
        turns.update(zip(numbers, _reserve_tokens(of_provider), strict=True))
    return [turns[each.number] for each in callers]


_reserve = Together(_reserve_all)


def _reserve_tokens(callers: Sequence[_Caller]) -> list[_Turn]:
    """Return the turn of each of these callers of one provider."""
    provider, probe = callers[0].provider, callers[0].probe
    state = probe or breaker.check(provider.key)
    if state.wait:
        return [_Turn(state)] * len(callers)
    wanted, ahead = (1, 0.0) if state.probe else (len(callers), AHEAD_SECONDS)
    rate, burst = provider.per_second * SHARE, provider.per_second * BURST_SECONDS
    now = time.monotonic()
    waits, after = rate_limit.reserve_tokens(provider.budget, rate, burst, ahead, wanted)
    times = [*(now + wait for wait in waits), *([None] * (wanted - len(waits)))]
    turns = [_Turn(state, at, now + after) for at in times]
    return turns + [_Turn(_BESIDE_PROBE)] * (len(callers) - wanted)


def _pause(pauses: Sequence[tuple[Provider, float]]) -> list[None]:
    """Stop requests to the providers in all processes for some seconds, after an answer 429."""
    for provider, seconds in pauses:
        rate_limit.pause(provider.budget, provider.per_second * SHARE, seconds)
    return [None] * len(pauses)


pause = Together(_pause)
