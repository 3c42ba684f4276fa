"""Query a provider within its rate limit and its circuit breaker, which all workers share."""

import time
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

from tailrace.domains.protection.services.providers.admission import admission, pause
from tailrace.domains.protection.services.providers.provider import Answer, Provider
from tailrace.jobs.destinations.breaker import BreakerState
from tailrace.jobs.destinations.delivery import (
    SENT,
    DeliveryResult,
    DeliveryStatus,
    update_breaker,
)
from tailrace.jobs.destinations.request_errors import RequestRefused, Unavailable
from tailrace.jobs.destinations.together import Together
from tailrace.net.http_client import Reply, Request
from tailrace.net.shared_client import shared_client

__all__ = ["Answer", "Provider", "ask"]

PATIENCE = 30.0
"""The default number of seconds that `ask` waits for the provider's rate limit."""
PAUSE_SECONDS = 10.0
"""The pause after an answer 429 without a `retry-after`."""


async def ask(
    provider: Provider,
    path: str,
    params: Sequence[tuple[str, str]] = (),
    *,
    headers: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
    is_wrong: Callable[[Answer], str] = lambda answer: "",
) -> Answer:
    """GET `path`, which has to be quoted, when the provider's budget allows it; return the answer.

    `patience`: seconds to wait for the budget. `is_wrong(answer)` returns why an answer of 200 is
    an error nevertheless, or an empty string. An answer 429 pauses the provider for all workers.

    Raises Unavailable if the provider is unavailable, answers 5xx, or sends an answer that is too
    large or invalid; RateLimited if the budget or a pause allows no request in time; RequestRefused
    if the provider answers 400, 401 or 403.
    """
    ends_at = time.monotonic() + patience
    query = f"?{urlencode(params)}" if params else ""
    request = Request(
        f"{provider.url}{path}{query}",
        {**provider.headers, **(headers or {})},
        method="GET",
        max_bytes=provider.max_bytes,
    )
    client = shared_client(public_only=False)  # the addresses are the operator's own
    while True:
        state = await admission(provider, ends_at)
        reply = await client.send(request)
        if reply.status != 429:
            break
        await pause((provider, reply.retry_after or PAUSE_SECONDS))
        await _record((provider, state, SENT))  # the provider is available
    answer = Answer(reply.status or 0, reply.headers, reply.body, provider.name)
    result = _result(reply)
    if result.status is DeliveryStatus.SENT and (why := _error_in(answer, is_wrong)):
        result = DeliveryResult(DeliveryStatus.FAILED, why)
    await _record((provider, state, result))
    if result.status is DeliveryStatus.SENT:
        return answer
    if result.status is DeliveryStatus.REJECTED:
        raise RequestRefused(result.reason, destination=provider.name, status=answer.status)
    raise Unavailable(result.reason, result.after, destination=provider.name)


def _error_in(answer: Answer, is_wrong: Callable[[Answer], str]) -> str:
    try:
        return is_wrong(answer) if answer.status == 200 else ""
    except Unavailable as error:  # raised by answer.json()
        return error.reason


def _result(reply: Reply) -> DeliveryResult:
    """Return the result for the provider's circuit breaker."""
    status = reply.status
    if status is None or reply.error:
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, reply.error or "no answer")
    if reply.cut:
        return DeliveryResult(
            DeliveryStatus.FAILED, f"answered with more than {len(reply.body):,} bytes"
        )
    if status in (200, 202, 304, 404):
        return SENT
    if status in (400, 401, 403):
        return DeliveryResult(DeliveryStatus.REJECTED, f"answered {status}: check its settings")
    return DeliveryResult(DeliveryStatus.FAILED, f"answered {status}", reply.retry_after)


def _record_all(results: Sequence[tuple[Provider, BreakerState, DeliveryResult]]) -> list[None]:
    """Update the breakers of the queried providers."""
    groups: dict[tuple[str, bool], list[tuple[BreakerState, DeliveryResult]]] = {}
    for provider, state, result in results:
        groups.setdefault((provider.key, state.probe), []).append((state, result))
    for (name, _probe), group in groups.items():
        state = max((state for state, _ in group), key=lambda each: each.failures)
        update_breaker(name, state, [result for _, result in group])
    return [None] * len(results)


_record = Together(_record_all)
