"""Send HTTP requests to URLs from users, with limits on time, size and IP addresses, by httpcore
with HTTP/1.1. It follows no redirects, keeps no cookies, ignores proxies in the environment and
does not decompress responses. Host names are looked up here, and connections are opened only to
addresses that ssrf_guard has checked."""

import asyncio
import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any, Self

import httpcore
import httpx
from django.conf import settings

from tailrace.db import clock
from tailrace.net import ssrf_guard
from tailrace.net.sanitize import printable

TOTAL_SECONDS = 15.0
"""Default time limit of one exchange, from the look-up of the host to the end of the response."""
CONNECT_SECONDS = 5.0
"""Time limit to connect to an address if the host has several; then the next one is tried."""
MAX_ADDRESSES = 3
"""Maximum number of a host's addresses that are tried."""
MAX_RESPONSE_BYTES = 64 * 1024
"""Maximum size of a body; the rest is not read."""
MAX_HEADER_BYTES = 32 * 1024
"""Maximum size of everything before the body: interim responses (1xx) and headers."""
CHUNK_OVERHEAD = 2
"""A chunked response may have this many times the bytes of its body."""
READ_BYTES = 16 * 1024
TEXT_LENGTH = 1000
"""Maximum number of characters in `Reply.text`."""
MAX_RETRY_AFTER = 3600.0
KEEPALIVE_SECONDS = 2.0
"""A connection that was idle for longer is not reused, as the server may have closed it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to send. Its repr shows no fields, to keep secrets and signatures out of logs."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    method: str = field(default="POST", repr=False)
    max_bytes: int = field(default=MAX_RESPONSE_BYTES, repr=False)
    """Maximum size of the response's body. The rest is not read, and `Reply.cut` is True."""
    seconds: float | None = field(default=None, repr=False)
    """Time limit of the whole exchange; None: TOTAL_SECONDS."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a request: an HTTP status, or an error."""

    status: int | None = None
    """The HTTP status, which may be set even if there is an error."""
    error: str = ""
    """Why the exchange ended early, without secrets."""
    refused: bool = False
    """Whether ssrf_guard refused the address, so that nothing was sent."""
    retry_after: float | None = None
    """Seconds from the Retry-After header, at most MAX_RETRY_AFTER."""
    text: str = ""
    """The beginning of the response's body, at most TEXT_LENGTH characters."""
    body: bytes = field(default=b"", repr=False)
    """The part of the body that was read."""
    cut: bool = False
    """Whether reading stopped at `max_bytes`, so that the body may be longer."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers by lower-case name."""
    milliseconds: int = 0

    @property
    def arrived(self) -> bool:
        return self.status is not None and not self.error


class Client:
    """A pool of connections for one event loop; an async context manager."""

    def __init__(
        self,
        *,
        public_only: bool = True,
        resolve: ssrf_guard.Resolver = ssrf_guard.system_resolver,
    ) -> None:
        """`public_only=False` allows private addresses; use it only for URLs from the settings."""
        self._check = ssrf_guard.check_url if public_only else httpx.URL
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_tls(settings.WEBHOOK_CA_FILE),
            max_connections=None,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=_Network(resolve, public_only),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._pool.aclose()

    async def send(self, request: Request) -> Reply:
        """Send the request and return the reply. Raises nothing but asyncio.CancelledError."""
        started = time.monotonic()
        response = _Response(request.max_bytes)
        seconds = TOTAL_SECONDS if request.seconds is None else request.seconds
        try:
            async with asyncio.timeout(seconds):
                await self._exchange(request, response)
        except ssrf_guard.AddressRefused as error:
            return Reply(error=str(error), refused=True, milliseconds=_milliseconds_since(started))
        except TimeoutError:
            response.error = f"no answer in {seconds:g} s"
            if response.status is not None:
                response.error = f"answered {response.status}, not all of it in {seconds:g} s"
        except (*_NETWORK_ERRORS, OSError) as error:
            response.error = _describe(error)
        except Exception as error:  # unexpected error of a library: other requests must go on
            response.error = type(error).__name__
        return response.reply(_milliseconds_since(started))

    async def _exchange(self, request: Request, response: "_Response") -> None:
        url = self._check(request.url)
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        headers = {"user-agent": "Tailrace", **request.headers}
        async with self._pool.stream(
            request.method, target, headers=list(headers.items()), content=request.body or None
        ) as stream:
            response.begin(stream.status, stream.headers)
            stream.extensions["network_stream"].limit = CHUNK_OVERHEAD * request.max_bytes
            async for chunk in stream.aiter_stream():
                if response.append(chunk):
                    return


def retry_after(value: str) -> float | None:
    """Return the seconds of a Retry-After header, from 1 to MAX_RETRY_AFTER; None if invalid."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):  # not a valid date
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - clock.now()).total_seconds()
    return min(max(seconds, 1.0), MAX_RETRY_AFTER) if seconds == seconds else None


@dataclass(slots=True)
class _Response:
    max_bytes: int
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    error: str = ""
    cut: bool = False

    def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.status = status
        for name, value in headers:
            self.headers[name.lower().decode("latin-1")] = value.decode("latin-1")

    def append(self, chunk: bytes) -> bool:
        self.body += chunk[: self.max_bytes - len(self.body)]
        self.cut = len(self.body) >= self.max_bytes
        return self.cut

    def reply(self, milliseconds: int) -> Reply:
        return Reply(
            status=self.status,
            error=self.error,
            retry_after=retry_after(self.headers.get("retry-after", "")),
            text=printable(self.body[: 4 * TEXT_LENGTH].decode(errors="replace"))[:TEXT_LENGTH],
            body=bytes(self.body),
            cut=self.cut,
            headers=self.headers,
            milliseconds=milliseconds,
        )


class _Network(httpcore.AsyncNetworkBackend):
    """Connects only to checked addresses. TLS and the Host header use the host's name."""

    def __init__(self, resolve: ssrf_guard.Resolver, public_only: bool) -> None:
        self._inner = httpcore.AnyIOBackend()
        self._addresses_of: ssrf_guard.Resolver = (
            partial(ssrf_guard.public_addresses, resolve=resolve) if public_only else resolve
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
        last_error: Exception | None = None
        for address in addresses[:MAX_ADDRESSES]:
            try:
                return _LimitedStream(
                    await self._inner.connect_tcp(
                        address, port, CONNECT_SECONDS if len(addresses) > 1 else timeout
                    )
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last_error = error
        raise last_error or OSError(f"{host} has no address")

    async def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        raise ssrf_guard.AddressRefused("Unix sockets are not supported")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _LimitedStream(httpcore.AsyncNetworkStream):
    """A connection that limits the bytes that are received per request: a server could send interim
    responses until the time limit of the exchange."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._received = 0
        self.limit = MAX_HEADER_BYTES

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._inner.read(min(max_bytes, READ_BYTES), timeout)
        self._received += len(data)
        if self._received > self.limit:
            raise httpcore.RemoteProtocolError(f"sent more than {self.limit // 1024} KiB")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._received, self.limit = 0, MAX_HEADER_BYTES  # a request begins
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _LimitedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run a host look-up in a daemon thread. It may take longer than the caller waits, and threads
    of an executor would be joined at the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        try:
            set_result = partial(_set_unless_done, future.set_result, future, work())
        except Exception as error:
            set_result = partial(_set_unless_done, future.set_exception, future, error)
        with contextlib.suppress(RuntimeError):  # the caller gave up and the loop is closed
            loop.call_soon_threadsafe(set_result)

    threading.Thread(target=run, name="resolver", daemon=True).start()
    return await future


def _set_unless_done(setter: Any, future: "asyncio.Future[Any]", value: Any) -> None:
    if not future.done():
        setter(value)


@cache
def _tls(ca_file: str) -> ssl.SSLContext:
    context = httpx.create_ssl_context(trust_env=False)
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context


_NETWORK_ERRORS = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)


def _describe(error: BaseException) -> str:
    """Return the message of the innermost cause that has one, cut to 300 characters."""
    message, cause = type(error).__name__, error
    while cause is not None:
        message = " ".join(str(cause).split()) or message
        cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
    return message[:300]


def _milliseconds_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
