"""POST each event over HTTP, signed according to Standard Webhooks (standardwebhooks.com)."""

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable
from functools import partial
from weakref import WeakKeyDictionary

import httpx
from django.conf import settings
from standardwebhooks import Webhook

from domains.builds.destinations.base import Bus, Message, Misconfigured
from jobs.destinations.delivery import NOT_TRIED, SENT, DeliveryResult, DeliveryStatus
from net.http_client import retry_after
from net.signing import signed_headers, signer

TOTAL_SECONDS = 15.0
"""For one POST, from name resolution to the end of the answer."""
MAX_CONCURRENT = 8
MAX_FAILURES_IN_A_ROW = 5
"""After this many error answers what waits is not tried."""
MAX_ANSWER_BYTES = 64 * 1024
RETRIED_STATUSES = (408, 429)


class _Sender:
    """The connections of one event loop to one destination, and whether it may be sent more."""

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
        came_at = time.monotonic()
        async with self._slots:
            if came_at <= self._stopped_at:
                return NOT_TRIED
            result = await post(self._client)
            failed = result.status is DeliveryStatus.FAILED
            self._failures_in_a_row = self._failures_in_a_row + 1 if failed else 0
            if (
                result.status is DeliveryStatus.UNAVAILABLE
                or result.after
                or self._failures_in_a_row >= MAX_FAILURES_IN_A_ROW
            ):
                self._failures_in_a_row, self._stopped_at = 0, time.monotonic()
            return result


class WebhookBus(Bus):
    """POSTs the body with the headers webhook-id, -timestamp and -signature.

    The secret is BUS_SECRET_<NAME>, or BUS_WEBHOOK_SECRET for all (whsec_ and base64).
    http:// is only for this machine, unless the URL ends with `#plain`.
    """

    schemes = ("https", "http")

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        if self.parts.scheme == "http" and self.parts.fragment != "plain" and not self._is_local():
            raise Misconfigured(
                f"{self.describe('http:// is not encrypted')}"
                " (use https://, or add #plain to the URL to allow it)"
            )
        self.signer = signer_of(name)
        self._senders: WeakKeyDictionary[asyncio.AbstractEventLoop, _Sender] = WeakKeyDictionary()

    async def deliver(self, message: Message) -> DeliveryResult:
        """POST one message, a few at a time. What waits when the destination becomes unavailable is
        not tried."""
        loop = asyncio.get_running_loop()
        if loop not in self._senders:
            self._senders[loop] = _Sender()
        return await self._senders[loop].send(partial(self._post, message=message))

    def _is_local(self) -> bool:
        host = self.parts.hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    async def _post(self, client: httpx.AsyncClient, *, message: Message) -> DeliveryResult:
        url = self.url.partition("#")[0]
        try:
            async with (
                asyncio.timeout(TOTAL_SECONDS),
                client.stream("POST", url, content=message.body, headers=self._headers(message))
                as answer,
            ):  # fmt: skip
                await _read(answer)
        except TimeoutError:
            return DeliveryResult(
                DeliveryStatus.UNAVAILABLE, self.describe(f"no answer in {TOTAL_SECONDS:g} s")
            )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return DeliveryResult(DeliveryStatus.UNAVAILABLE, self.describe(error))
        return self._result(answer)

    def _headers(self, message: Message) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "user-agent": "Tailrace",
            **signed_headers(str(message.id), message.body, self.signer),
            "x-routing-key": message.key,
        }

    def _result(self, answer: httpx.Response) -> DeliveryResult:
        status = answer.status_code
        if 200 <= status < 300:
            return SENT
        reason = self.describe(f"answered {status} {answer.reason_phrase}".strip())
        if status in RETRIED_STATUSES or status >= 500:
            return DeliveryResult(
                DeliveryStatus.FAILED, reason, retry_after(answer.headers.get("retry-after", ""))
            )
        if 300 <= status < 400:
            reason += " (redirects are not followed: use the URL it redirects to)"
        return DeliveryResult(DeliveryStatus.REJECTED, reason)


async def _read(answer: httpx.Response) -> None:
    """Read the answer's body, so that the connection can be reused; stop if it is too long."""
    size = 0
    async for chunk in answer.aiter_raw():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            return


def signer_of(name: str) -> Webhook:
    """Return the signer for the bus of that name."""
    variable = f"BUS_SECRET_{name.upper().replace('-', '_')}"
    text = settings.BUS_SECRETS.get(variable.removeprefix("BUS_SECRET_"))
    if not text:
        variable, text = f"BUS_WEBHOOK_SECRET or {variable}", settings.BUS_WEBHOOK_SECRET
    try:
        return signer(text)
    except ValueError:
        raise Misconfigured(
            f"bus {name!r}: {variable} must be whsec_ followed by a key in base64"
        ) from None
