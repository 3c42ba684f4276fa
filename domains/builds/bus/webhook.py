"""https://: each event is a POST, signed as Standard Webhooks has it (standardwebhooks.com)."""

import asyncio
import ipaddress
from collections.abc import Sequence

import httpx
from django.conf import settings

from domains.builds.bus.base import SENT, UNTRIED, Bus, Delivery, Fate, Message, Misconfigured
from events import clock
from subscriptions.sending import retry_after
from subscriptions.signing import key_of, sign

TOTAL_SECONDS = 15.0
"""For one POST, from the name's resolution to the end of what is read of the answer."""
BATCH_SECONDS = 10.0
"""After that no POST of a batch is begun: a slow destination holds no worker for long."""
AT_ONCE = 8
FAILURES_IN_A_ROW = 5
"""After so many error answers the rest of a batch is spared."""
ANSWER_BYTES = 64 * 1024
TRY_AGAIN = (408, 429)


class WebhookBus(Bus):
    """POSTs the body with the headers webhook-id, -timestamp and -signature.

    The secret is BUS_SECRET_<NAME>, or BUS_WEBHOOK_SECRET for all (whsec_ and base64).
    http:// is for this machine alone; `#plain` behind the URL allows it elsewhere.
    """

    schemes = ("https", "http")

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        if self.parts.scheme == "http" and self.parts.fragment != "plain" and not self._is_here():
            raise Misconfigured(
                f"{self.why(ValueError('http:// would go unencrypted'))}"
                " (use https://, or allow it by #plain at the URL's end)"
            )
        self.secret = secret(name)

    def send(self, messages: Sequence[Message]) -> list[Delivery]:
        """POST the messages, several at once; one that meets a dead destination stops the rest."""
        return asyncio.run(self._send(messages))

    def _is_here(self) -> bool:
        host = self.parts.hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    async def _send(self, messages: Sequence[Message]) -> list[Delivery]:
        turns = asyncio.Semaphore(AT_ONCE)
        stopped = asyncio.Event()
        failures = 0
        asyncio.get_running_loop().call_later(BATCH_SECONDS, stopped.set)

        async def deliver(message: Message) -> Delivery:
            nonlocal failures
            async with turns:
                if stopped.is_set():
                    return UNTRIED
                delivery = await self._post(client, message)
                failures = failures + 1 if delivery.fate is Fate.FAILED else 0
                if delivery.fate is Fate.DOWN or delivery.after or failures >= FAILURES_IN_A_ROW:
                    stopped.set()
                return delivery

        async with httpx.AsyncClient(
            trust_env=False, follow_redirects=False, timeout=TOTAL_SECONDS
        ) as client:
            return await asyncio.gather(*map(deliver, messages))

    async def _post(self, client: httpx.AsyncClient, message: Message) -> Delivery:
        url = self.url.partition("#")[0]
        try:
            async with (
                asyncio.timeout(TOTAL_SECONDS),
                client.stream("POST", url, content=message.body, headers=self._headers(message))
                as answer,
            ):  # fmt: skip
                await _read(answer)
        except TimeoutError:
            late = TimeoutError(f"no answer in {TOTAL_SECONDS:g} s")
            return Delivery(Fate.DOWN, self.why(late))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return Delivery(Fate.DOWN, self.why(error))
        return self._judge(answer)

    def _headers(self, message: Message) -> dict[str, str]:
        id, timestamp = str(message.id), str(int(clock.now().timestamp()))
        return {
            "content-type": "application/json",
            "user-agent": "Tailrace",
            "webhook-id": id,
            "webhook-timestamp": timestamp,
            "webhook-signature": sign(self.secret, id, timestamp, message.body),
            "x-routing-key": message.key,
        }

    def _judge(self, answer: httpx.Response) -> Delivery:
        status = answer.status_code
        if 200 <= status < 300:
            return SENT
        reason = self.why(ValueError(f"answered {status} {answer.reason_phrase}".strip()))
        if status in TRY_AGAIN or status >= 500:
            return Delivery(Fate.FAILED, reason, retry_after(answer.headers.get("retry-after", "")))
        if 300 <= status < 400:
            reason += " (redirects are not followed: set the URL it names)"
        return Delivery(Fate.REFUSED, reason)


async def _read(answer: httpx.Response) -> None:
    """Read the answer's body, so that the connection serves the next; give up on a long one."""
    read = 0
    async for chunk in answer.aiter_raw():
        read += len(chunk)
        if read > ANSWER_BYTES:
            return


def secret(name: str) -> bytes:
    """Return the key that signs for the bus of that name, from the environment's settings."""
    variable = f"BUS_SECRET_{name.upper().replace('-', '_')}"
    text = settings.BUS_SECRETS.get(variable.removeprefix("BUS_SECRET_"))
    if not text:
        variable, text = f"BUS_WEBHOOK_SECRET or {variable}", settings.BUS_WEBHOOK_SECRET
    try:
        return key_of(text)
    except ValueError:
        raise Misconfigured(
            f"bus {name!r}: {variable} has to be whsec_ followed by a key in base64"
        ) from None
