"""GET a page of a source, subject to the host's circuit breaker and rate limit, which all workers
share."""

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode, urljoin, urlsplit

from asgiref.sync import sync_to_async
from django.conf import settings

from tailrace.jobs.destinations import breaker, rate_limit
from tailrace.jobs.destinations.breaker import BreakerState
from tailrace.jobs.destinations.delivery import (
    SENT,
    DeliveryResult,
    DeliveryStatus,
    update_breaker,
)
from tailrace.jobs.destinations.request_errors import RateLimited, RequestRefused, Unavailable
from tailrace.net import ssrf_guard
from tailrace.net.http_client import Reply, Request
from tailrace.net.shared_client import shared_client

MAX_PAGE_BYTES = 5_000_000
"""Maximum size of a page after decompression; larger pages are refused."""
SECONDS = 60.0
"""Time limit of one page, which repositories may compute slowly."""
MAX_REDIRECTS = 3
PATIENCE = 5.0
"""Seconds that `fetch` waits for the rate limit. If the wait is longer, the job is snoozed."""
REDIRECTS = (301, 302, 303, 307, 308)
ACCEPTED = "gzip;q=1.0, identity;q=0.5"
ALLOW = " (an administrator can allow it with RECORDS_LOCAL_SOURCES)"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response with the status 200, or with another status that the caller accepts."""

    status: int
    body: bytes = field(repr=False)
    """The body after decompression."""


async def fetch(
    url: str,
    params: Sequence[tuple[str, str]] = (),
    *,
    accept: str,
    other_statuses: Sequence[int] = (),
) -> Answer:
    """GET the URL with these parameters added to its query.

    Follows redirects and checks each address. Raises Unavailable, RateLimited or RequestRefused.
    """
    if params:
        url += ("&" if urlsplit(url).query else "?") + urlencode(params)
    for _ in range(MAX_REDIRECTS + 1):
        reply = await _send(url, accept, other_statuses)
        if reply.status not in REDIRECTS:
            return Answer(reply.status or 0, _decompressed_body(reply))
        if not (location := reply.headers.get("location")):
            raise RequestRefused(f"answered {reply.status} without a Location header")
        url = urljoin(url, location)
    raise RequestRefused(f"redirects more than {MAX_REDIRECTS} times: enter its final address")


def origin(url: str) -> str:
    """Return scheme, host and port of a URL, as in RECORDS_LOCAL_SOURCES."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def is_local(url: str) -> bool:
    """Whether RECORDS_LOCAL_SOURCES allows this URL to be private or unencrypted."""
    return origin(url) in {origin(each) for each in settings.RECORDS_LOCAL_SOURCES}


def refusal(error: str) -> str:
    """Return the reason why the address of a source is refused, with the variable that allows it
    for sources."""
    for of_webhooks in (ssrf_guard.ALLOW_HTTP, ssrf_guard.ALLOW_ADDRESS):
        error = error.replace(of_webhooks, ALLOW)
    return error


async def _send(url: str, accept: str, other_statuses: Sequence[int]) -> Reply:
    """Send a request when the host's breaker and rate limit allow it; record the result."""
    name = f"records:{urlsplit(url).hostname or ''}"[:200]
    state = await _wait_for_rate_limit(name)
    request = Request(
        url,
        {"Accept": accept, "Accept-Encoding": ACCEPTED},
        method="GET",
        max_bytes=MAX_PAGE_BYTES,
        seconds=SECONDS,
    )
    reply = await shared_client(public_only=not is_local(url)).send(request)
    result = _result(reply, other_statuses)
    if not reply.refused:
        await sync_to_async(update_breaker)(name, state, [result])
    if result.status is DeliveryStatus.SENT:
        return reply
    if result.status is DeliveryStatus.REJECTED:
        raise RequestRefused(result.reason)
    raise Unavailable(result.reason, result.after)


async def _wait_for_rate_limit(name: str) -> BreakerState:
    """Wait until the host's rate limit allows a request, and return the state of its breaker.

    Raises RateLimited if this takes longer than PATIENCE, Unavailable if the breaker is open.
    """
    state = await sync_to_async(breaker.check)(name)
    if state.wait:
        raise Unavailable("its circuit breaker is open", state.wait, was_asked=False)
    rate = settings.RECORDS_REQUESTS_PER_SECOND
    waited = 0.0
    while wait := await sync_to_async(rate_limit.take_token)(f"{name}:rate", rate, max(rate, 1.0)):
        if (waited := waited + wait) > PATIENCE:
            raise RateLimited(f"has reached the limit of {rate:g} requests per second", wait)
        await asyncio.sleep(wait)
    return state


def _result(reply: Reply, other_statuses: Sequence[int]) -> DeliveryResult:
    """Return the result of the request for the host's circuit breaker."""
    status = reply.status
    if reply.refused:
        return DeliveryResult(DeliveryStatus.REJECTED, refusal(reply.error))
    if status is None or reply.error:
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, reply.error or "no answer")
    if status in (429, 503):
        return DeliveryResult(DeliveryStatus.FAILED, f"answered {status}", reply.retry_after)
    if status >= 500 or status == 408:
        return DeliveryResult(DeliveryStatus.FAILED, f"answered {status}")
    if status in (200, *REDIRECTS, *other_statuses):
        return SENT if not reply.cut else _page_too_large()
    return DeliveryResult(DeliveryStatus.REJECTED, f"answered {status}: check its address")


def _page_too_large() -> DeliveryResult:
    reason = f"sent a page of over {MAX_PAGE_BYTES:,} bytes: configure smaller pages there"
    return DeliveryResult(DeliveryStatus.REJECTED, reason)


def _decompressed_body(reply: Reply) -> bytes:
    """Return the body, decompressed. Raises RequestRefused if it is too large or not gzip."""
    encoding = reply.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return reply.body
    if encoding not in ("gzip", "x-gzip"):
        raise RequestRefused(f"compresses its pages with {encoding[:50]!r}; only gzip is supported")
    decompressor = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        body = decompressor.decompress(reply.body, MAX_PAGE_BYTES + 1)
    except zlib.error as error:
        raise Unavailable(f"sent a damaged gzip page ({error})") from None
    if len(body) > MAX_PAGE_BYTES:
        raise RequestRefused(_page_too_large().reason)
    if not decompressor.eof:
        raise Unavailable("sent a gzip page that ends too early")
    return body
