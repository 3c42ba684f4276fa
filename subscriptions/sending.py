"""sending: one POST to an address that a user chose, within bounds whatever the peer does.

HTTP/1.1 by httpcore, which knows neither redirects, cookies, proxies from the environment nor
compressed answers. Names are looked up here, and only checked addresses are connected to (guard).
"""

import asyncio
import contextlib
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any, Self

import httpcore
import httpx
from django.conf import settings

from events import clock
from subscriptions import guard
from subscriptions.text import printable

TOTAL_SECONDS = 15.0
"""For one exchange, from the name's resolution to the end of what is read of the answer."""
CONNECT_SECONDS = 5.0
"""For one of several addresses; then the next one is tried."""
ADDRESSES = 3
"""Addresses of a name that are tried."""
ANSWER_BYTES = 64 * 1024
SHOWN = 1000
"""Characters of an answer that are kept."""
LONGEST_WAIT = 3600.0
"""Retry-After is honoured up to this."""
KEEP_SECONDS = 2.0
"""A connection that was idle for longer is not used again: its peer may have closed it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A POST to be. Neither body nor headers show in logs: they hold signatures and secrets."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of it: a status, or why there is none."""

    status: int | None = None
    error: str = ""
    """Of an exchange that broke off, in words without secrets. It may have a status all the same:
    its answer was cut."""
    refused: bool = False
    """The guard refused the address: nothing was sent."""
    cut: bool = False
    """It was given up by us, before its time was over."""
    retry_after: float | None = None
    """Seconds, within bounds."""
    text: str = ""
    """The beginning of the answer's body."""
    body: bytes = field(default=b"", repr=False)
    """All of it that was read."""
    milliseconds: int = 0

    @property
    def arrived(self) -> bool:
        return self.status is not None and not self.error


class Client:
    """Keeps the connections of one batch. Use it as an async context manager."""

    def __init__(
        self, *, guarded: bool = True, resolve: guard.Resolver = guard.ask_system, at_once: int = 64
    ) -> None:
        """`guarded=False` is for addresses that the operator chose, not a user."""
        self._check = guard.check_url if guarded else httpx.URL
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_tls(settings.WEBHOOK_CA_FILE),
            max_connections=at_once,
            keepalive_expiry=KEEP_SECONDS,
            network_backend=_Network(resolve, guarded),
        )

    async def __aenter__(self) -> Self:
        await self._pool.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._pool.aclose()

    async def post(self, request: Request) -> Reply:
        """Send it and return what came of it. Raises nothing but asyncio.CancelledError."""
        began = time.monotonic()
        heard = _Heard()
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                await self._exchange(request, heard)
        except guard.Refused as error:
            return Reply(error=str(error), refused=True, milliseconds=_since(began))
        except TimeoutError:
            heard.error = f"no answer in {TOTAL_SECONDS:g} s"
            if heard.status is not None:
                heard.error = f"answered {heard.status}, not all of it in {TOTAL_SECONDS:g} s"
        except (*_BROKEN, OSError) as error:
            heard.error = _words(error)
        except Exception as error:  # a library's own: it must not take the batch along
            heard.error = type(error).__name__
        return heard.reply(_since(began))

    async def _exchange(self, request: Request, heard: "_Heard") -> None:
        url = self._check(request.url)
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        headers = {"user-agent": "Tailrace", **request.headers}
        async with self._pool.stream(
            "POST", target, headers=list(headers.items()), content=request.body
        ) as answer:
            heard.begin(answer.status, answer.headers)
            async for chunk in answer.aiter_stream():
                if heard.take(chunk):
                    return


def post(request: Request, *, guarded: bool = True) -> Reply:
    """Send one request here and now; return what came of it."""

    async def once() -> Reply:
        async with Client(guarded=guarded) as client:
            return await client.post(request)

    return asyncio.run(once())


def retry_after(value: str) -> float | None:
    """Return the seconds that a Retry-After header asks for, from 1 to an hour; None if none."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):  # whatever the peer wrote
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - clock.now()).total_seconds()
    return min(max(seconds, 1.0), LONGEST_WAIT) if seconds == seconds else None


@dataclass(slots=True)
class _Heard:
    """What is known of the answer so far."""

    status: int | None = None
    after: str = ""
    body: bytearray = field(default_factory=bytearray)
    error: str = ""

    def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.status = status
        for name, value in headers:
            if name.lower() == b"retry-after":
                self.after = value.decode("latin-1")

    def take(self, chunk: bytes) -> bool:
        """Keep a piece of the body; say whether that is enough."""
        self.body += chunk[: ANSWER_BYTES - len(self.body)]
        return len(self.body) >= ANSWER_BYTES

    def reply(self, milliseconds: int) -> Reply:
        return Reply(
            status=self.status,
            error=self.error,
            retry_after=retry_after(self.after),
            text=printable(self.body[: 4 * SHOWN].decode(errors="replace"))[:SHOWN],
            body=bytes(self.body),
            milliseconds=milliseconds,
        )


class _Network(httpcore.AsyncNetworkBackend):
    """Connects to checked addresses alone; the name itself goes to TLS and into Host."""

    def __init__(self, resolve: guard.Resolver, guarded: bool) -> None:
        self._inner = httpcore.AnyIOBackend()
        self._addresses_of = partial(
            guard.addresses_of if guarded else _addresses_of, resolve=resolve
        )

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await _in_thread(partial(self._addresses_of, host, port))
        last: Exception | None = None
        for address in addresses[:ADDRESSES]:
            try:
                return await self._inner.connect_tcp(
                    address, port, CONNECT_SECONDS if len(addresses) > 1 else timeout
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
        raise last or OSError(f"{host} has no address")

    async def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        raise guard.Refused("a socket of this machine is not sent to")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _addresses_of(host: str, port: int, resolve: guard.Resolver) -> list[str]:
    return list(resolve(host, port))


async def _in_thread(work: Any) -> Any:
    """Run a look-up in a thread that nobody waits for: the system's resolver takes its time, and
    an executor's threads would have to be joined."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(_set, future.set_result, future, work())
        except Exception as error:
            settle = partial(_set, future.set_exception, future, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: it was not waited for
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name="resolver", daemon=True).start()
    return await future


def _set(setter: Any, future: "asyncio.Future[Any]", value: Any) -> None:
    if not future.done():
        setter(value)


@cache
def _tls(ca_file: str) -> ssl.SSLContext:
    context = httpx.create_ssl_context(trust_env=False)
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context


_BROKEN = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)


def _words(error: BaseException) -> str:
    """Put an error into words: those of its first cause that has any, which say the most."""
    words, link = type(error).__name__, error
    while link is not None:
        words = " ".join(str(link).split()) or words
        link = link.__cause__ or link.__context__  # type: ignore[assignment]
    return words[:300]


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
