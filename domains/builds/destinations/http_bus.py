"""The base class of buses that POST each event over HTTP."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from weakref import WeakKeyDictionary

import httpx

from tailrace.domains.builds.destinations.base import Bus, Message
from tailrace.jobs.destinations.delivery import (
    NOT_TRIED,
    SENT,
    DeliveryResult,
    DeliveryStatus,
)
from tailrace.net.http_client import retry_after

TOTAL_SECONDS = 15.0
"""Time limit of one POST, from name resolution to the end of the answer."""
MAX_CONCURRENT = 8
MAX_FAILURES_IN_A_ROW = 5
"""After this many error answers in a row, waiting messages are not tried."""
MAX_ANSWER_BYTES = 64 * 1024
RETRIED_STATUSES = (408, 429)


class _Sender:
    """The connections of one event loop to one destination, for MAX_CONCURRENT messages at a time.
    After a failure, the waiting messages are not tried."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(
            trust_env=False, follow_redirects=False, timeout=TOTAL_SECONDS
        )
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._failures_in_a_row = 0
        self._stopped_at = 0.0

    async def send(
        self, post: Callable[[httpx.AsyncClient], Awaitable[DeliveryResult]]
    ) -> DeliveryResult:
        arrived_at = time.monotonic()
        async with self._slots:
            if arrived_at <= self._stopped_at:
                return NOT_TRIED
            result = await post(self._client)
            failed = result.status is DeliveryStatus.FAILED
            self._failures_in_a_row = self._failures_in_a_row + 1 if failed else 0
            unavailable = result.after or result.status is DeliveryStatus.UNAVAILABLE
            if unavailable or self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
                self._failures_in_a_row, self._stopped_at = 0, time.monotonic()
            return result


class HttpBus(Bus):
    """POSTs each message over HTTP. A subclass implements `target` and `headers`."""

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        self._senders: WeakKeyDictionary[asyncio.AbstractEventLoop, _Sender] = WeakKeyDictionary()

    def target(self, message: Message) -> str:
        """Return the URL to which the message is sent."""
        raise NotImplementedError

    def headers(self, message: Message) -> dict[str, str]:
        """Return the request's headers."""
        raise NotImplementedError

    def content(self, message: Message) -> bytes:
        """Return the request's body."""
        return message.body

    async def deliver(self, message: Message) -> DeliveryResult:
        """POST one message, unless the destination becomes unavailable while it waits."""
        loop = asyncio.get_running_loop()
        if loop not in self._senders:
            self._senders[loop] = _Sender()
        return await self._senders[loop].send(partial(self._post, message=message))

    async def _post(self, client: httpx.AsyncClient, *, message: Message) -> DeliveryResult:
        content, headers = self.content(message), self.headers(message)
        try:
            async with (
                asyncio.timeout(TOTAL_SECONDS),
                client.stream("POST", self.target(message), content=content, headers=headers)
                as answer,
            ):  # fmt: skip
                await _read(answer)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            late = f"no answer in {TOTAL_SECONDS:g} s"
            reason = self.describe(late if isinstance(error, TimeoutError) else error)
            return DeliveryResult(DeliveryStatus.UNAVAILABLE, reason)
        return self._result(answer)

    def _result(self, answer: httpx.Response) -> DeliveryResult:
        status = answer.status_code
        if 200 <= status < 300:
            return SENT
        reason = self.describe(f"answered {status} {answer.reason_phrase}".strip())
        if status in RETRIED_STATUSES or status >= 500:
            after = retry_after(answer.headers.get("retry-after", ""))
            return DeliveryResult(DeliveryStatus.FAILED, reason, after)
        if 300 <= status < 400:
            reason += " (redirects are not followed; set the new URL in BUS_BACKENDS)"
        return DeliveryResult(DeliveryStatus.REJECTED, reason)


async def _read(answer: httpx.Response) -> None:
    """Read the answer's body, so that the connection can be reused. Stop after MAX_ANSWER_BYTES."""
    size = 0
    async for chunk in answer.aiter_raw():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            return
