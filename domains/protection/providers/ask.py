"""Ask a provider, within its rate limit and its circuit breaker, which all workers share."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import uniform
from typing import Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from jobs.destinations import breaker, rate_limit
from jobs.destinations.breaker import BreakerState
from jobs.destinations.delivery import DeliveryResult, DeliveryStatus, update_breaker
from jobs.destinations.together import Together
from net.http_client import Client, Reply, Request

MAX_BYTES = 4_000_000
"""Of an answer; a longer one is refused."""
PATIENCE = 30.0
"""Seconds that `ask` waits for the provider's rate limit, unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider answers, and how much it may be asked."""

    name: str
    """Its breaker and its budget are called `protection:<name>`."""
    url: str
    """Without a slash at its end."""
    per_second: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_bytes: int = MAX_BYTES

    @property
    def key(self) -> str:
        return f"protection:{self.name}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider answered: 200, 202, 304 or 404."""

    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes = field(repr=False)
    provider: str

    def json(self) -> Any:
        """Return the document; SourceAway if it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise SourceAway(self.provider, "answered with something that is not JSON") from None


class SourceAway(Exception):
    """The provider cannot answer now: it is away, too busy, or answers nonsense."""

    def __init__(self, provider: str, reason: str, after: float | None = None) -> None:
        super().__init__(f"{provider}: {reason}")
        self.provider, self.reason = provider, reason
        self.after = after
        """Seconds until it may be asked again, if it is known."""


class SourceBusy(Exception):
    """The provider's rate limit left no place in time: nothing is wrong, and nothing was asked."""

    def __init__(self, provider: str, after: float) -> None:
        super().__init__(f"{provider}: its rate limit is used up")
        self.provider, self.after = provider, after


class SourceRefuses(Exception):
    """The provider refuses all that we ask: its settings are wrong, and an operator has to act."""

    def __init__(self, provider: str, reason: str) -> None:
        super().__init__(f"{provider}: {reason}")
        self.provider, self.reason = provider, reason


async def ask(
    provider: Provider,
    path: str,
    params: Sequence[tuple[str, str]] = (),
    *,
    headers: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
    is_wrong: Callable[[Answer], str] = lambda answer: "",
) -> Answer:
    """GET `path`, which is quoted already, when the provider's budget allows it; return the answer.

    `patience`: how long to wait for the budget. `is_wrong(answer)` returns why an answer of 200 is
    an error all the same, or an empty string. SourceAway if it is away, or answers 429, 5xx, too
    much or nonsense; SourceBusy if its budget left no place; SourceRefuses if it answers 400, 401
    or 403.
    """
    state = await _admission(provider, patience)
    query = f"?{urlencode(params)}" if params else ""
    request = Request(
        f"{provider.url}{path}{query}",
        {**provider.headers, **(headers or {})},
        method="GET",
        max_bytes=provider.max_bytes,
    )
    reply = await _client().send(request)
    answer = Answer(reply.status or 0, reply.headers, reply.body, provider.name)
    result = _result(reply)
    if reply.status == 200 and (reason := is_wrong(answer)):
        result = DeliveryResult(DeliveryStatus.FAILED, reason)
    await _recorded((provider, state, result))
    if result.status is DeliveryStatus.SENT:
        return answer
    if result.status is DeliveryStatus.REJECTED:
        raise SourceRefuses(provider.name, result.reason)
    raise SourceAway(provider.name, result.reason, result.after)


def _result(reply: Reply) -> DeliveryResult:
    """Return what the reply means for the provider's breaker."""
    status = reply.status
    if status is None or reply.error:
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, reply.error or "no answer")
    if reply.cut:
        return DeliveryResult(DeliveryStatus.FAILED, f"answered over {len(reply.body):,} bytes")
    if status in (200, 202, 304, 404):
        return DeliveryResult(DeliveryStatus.SENT)
    if status in (400, 401, 403):
        return DeliveryResult(DeliveryStatus.REJECTED, f"answered {status}: check its settings")
    return DeliveryResult(DeliveryStatus.FAILED, f"answered {status}", reply.retry_after)


async def _admission(provider: Provider, patience: float) -> BreakerState:
    ends_at = time.monotonic() + patience
    while True:
        state, wait = await _admitted(provider)
        if state.wait:
            raise SourceAway(provider.name, "its circuit breaker is open", state.wait)
        if not wait:
            return state
        if time.monotonic() + wait > ends_at:
            raise SourceBusy(provider.name, wait)
        await asyncio.sleep(wait * uniform(1, 1.2))  # noqa: S311


def _admit(providers: Sequence[Provider]) -> list[tuple[BreakerState, float]]:
    """Return whether each may be asked now: the state of its breaker, and seconds to wait."""
    states = breaker.check_all({provider.key for provider in providers})
    admitted = []
    waits: dict[str, float] = {}
    for provider in providers:
        state = states[provider.key]
        if state.probe:  # one of those who ask
            states[provider.key] = BreakerState(wait=1.0, failures=state.failures)
        if not state.wait and not waits.get(provider.key):
            waits[provider.key] = rate_limit.take_token(
                f"{provider.key}:rate", provider.per_second, max(provider.per_second / 10, 1.0)
            )
        admitted.append((state, waits.get(provider.key, 0.0)))
    return admitted


_admitted = Together(_admit)


def _record(asked: Sequence[tuple[Provider, BreakerState, DeliveryResult]]) -> list[None]:
    """Update the breakers of those who were asked."""
    groups: dict[tuple[str, bool], list[tuple[BreakerState, DeliveryResult]]] = {}
    for provider, state, result in asked:
        groups.setdefault((provider.key, state.probe), []).append((state, result))
    for (name, _probe), group in groups.items():
        state = max((state for state, _ in group), key=lambda each: each.failures)
        update_breaker(name, state, [result for _, result in group])
    return [None] * len(asked)


_recorded = Together(_record)

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()


def _client() -> Client:
    """Return the HTTP client of the running event loop. Addresses are the operator's own."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = Client(public_only=False, max_connections=None)
    return _clients[loop]
