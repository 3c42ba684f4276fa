"""The base class of buses that POST each event over HTTP."""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from tailrace.domains.builds.destinations.base import Bus, Message
from tailrace.jobs.destinations.delivery import NOT_TRIED, DeliveryResult, DeliveryStatus
from tailrace.jobs.destinations.replies import result_of_reply
from tailrace.net.http_client import Request
from tailrace.net.shared_client import shared_client

TOTAL_SECONDS = 15.0
"""Time limit of one POST, from name resolution to the end of the answer."""
MAX_CONCURRENT = 8
MAX_FAILURES_IN_A_ROW = 5
"""After this many error answers in a row, waiting messages are not tried."""


class _Sender:
    """Sends MAX_CONCURRENT messages of one event loop to one destination at a time. After a
    failure, the waiting messages are not tried."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._failures_in_a_row = 0
        self._stopped_at = 0.0

    async def send(self, post: Callable[[], Awaitable[DeliveryResult]]) -> DeliveryResult:
        arrived_at = time.monotonic()
        async with self._slots:
            if arrived_at <= self._stopped_at:
                return NOT_TRIED
            result = await post()
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
        return await self._senders[loop].send(partial(self._post, message))

    async def _post(self, message: Message) -> DeliveryResult:
        headers = self._authorization() | self.headers(message)
        content = self.content(message)
        request = Request(self.target(message), headers, content, seconds=TOTAL_SECONDS)
        # The URL is the operator's own.
        reply = await shared_client(public_only=False).send(request)
        result = result_of_reply(reply, redirected="set the new URL in BUS_BACKENDS")
        return replace(result, reason=result.reason and self.describe(result.reason), result=None)

    def _authorization(self) -> dict[str, str]:
        """Return the header with the user and the password of the URL, if it has them."""
        if not self.parts.username:
            return {}
        account = f"{unquote(self.parts.username)}:{unquote(self.parts.password or '')}"
        return {"authorization": f"Basic {base64.b64encode(account.encode()).decode()}"}
