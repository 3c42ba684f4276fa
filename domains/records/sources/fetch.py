"""GET a page of a source, within the circuit breaker and the rate limit that all workers share."""

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode, urljoin, urlsplit

from asgiref.sync import sync_to_async
from django.conf import settings

from tailrace.jobs.destinations import breaker, rate_limit
from tailrace.jobs.destinations.breaker import BreakerState
from tailrace.jobs.destinations.delivery import SENT, DeliveryResult, DeliveryStatus, update_breaker
from tailrace.jobs.destinations.source_errors import SourceAway, SourceBusy, SourceRefuses
from tailrace.net.http_client import Reply, Request
from tailrace.net.shared_client import shared_client

MAX_PAGE_BYTES = 5_000_000
"""Of a page, unpacked; a bigger one is refused."""
SECONDS = 60.0
"""For one page: repositories work it out while we wait."""
MAX_REDIRECTS = 3
PATIENCE = 5.0
"""Seconds that `fetch` waits for the rate limit; then the job waits instead of it."""
REDIRECTS = (301, 302, 303, 307, 308)
ACCEPTED = "gzip;q=1.0, identity;q=0.5"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with the status 200, or one of those that the caller accepts."""

    status: int
    body: bytes = field(repr=False)
    """Unpacked."""


async def fetch(
    url: str,
    params: Sequence[tuple[str, str]] = (),
    *,
    accept: str,
    other_statuses: Sequence[int] = (),
) -> Answer:
    """GET the URL with these parameters added to its query. Redirects are followed, each address
    is checked.

    Raises SourceAway, SourceBusy or SourceRefuses.
    """
    if params:
        url += ("&" if urlsplit(url).query else "?") + urlencode(params)
    for _ in range(MAX_REDIRECTS + 1):
        reply = await _send(url, accept, other_statuses)
        if reply.status not in REDIRECTS:
            return Answer(reply.status or 0, _unpacked(reply))
        if not (location := reply.headers.get("location")):
            raise SourceRefuses(f"answered {reply.status} without saying where to look instead")
        url = urljoin(url, location)
    raise SourceRefuses(f"redirects more than {MAX_REDIRECTS} times: set its final address")


def origin(url: str) -> str:
    """Return scheme, host and port of a URL, as in RECORDS_LOCAL_SOURCES."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def is_local(url: str) -> bool:
    """Whether the operator says that this address need not be public."""
    return origin(url) in {origin(each) for each in settings.RECORDS_LOCAL_SOURCES}


async def _send(url: str, accept: str, other_statuses: Sequence[int]) -> Reply:
    """Send one request when breaker and budget of its host allow it; record how it ended."""
    name = f"records:{urlsplit(url).hostname or ''}"[:200]
    state = await _admission(name)
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
        raise SourceRefuses(result.reason)
    raise SourceAway(result.reason, result.after)


async def _admission(name: str) -> BreakerState:
    """Wait for a place in the host's rate limit; SourceBusy if that takes long, SourceAway if the
    host's circuit breaker is open."""
    state = await sync_to_async(breaker.check)(name)
    if state.wait:
        raise SourceAway("its circuit breaker is open", state.wait, was_asked=False)
    rate = settings.RECORDS_REQUESTS_PER_SECOND
    waited = 0.0
    while wait := await sync_to_async(rate_limit.take_token)(f"{name}:rate", rate, max(rate, 1.0)):
        if (waited := waited + wait) > PATIENCE:
            raise SourceBusy(f"gets {rate:g} requests a second, by our limit", wait)
        await asyncio.sleep(wait)
    return state


def _result(reply: Reply, other_statuses: Sequence[int]) -> DeliveryResult:
    """Return what the reply means for the host's breaker."""
    status = reply.status
    if reply.refused:
        return DeliveryResult(DeliveryStatus.REJECTED, reply.error)
    if status is None or reply.error:
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, reply.error or "no answer")
    if status in (429, 503):
        return DeliveryResult(DeliveryStatus.FAILED, f"answered {status}", reply.retry_after)
    if status >= 500 or status == 408:
        return DeliveryResult(DeliveryStatus.FAILED, f"answered {status}")
    if status in (200, *REDIRECTS, *other_statuses):
        return SENT if not reply.cut else _too_big()
    return DeliveryResult(DeliveryStatus.REJECTED, f"answered {status}: check its address")


def _too_big() -> DeliveryResult:
    reason = f"sent a page of over {MAX_PAGE_BYTES:,} bytes: let it send smaller pages"
    return DeliveryResult(DeliveryStatus.REJECTED, reason)


def _unpacked(reply: Reply) -> bytes:
    """Return the body without its gzip encoding; what unpacks to too much is refused."""
    encoding = reply.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return reply.body
    if encoding not in ("gzip", "x-gzip"):
        raise SourceRefuses(f"packs its pages with {encoding[:50]!r}, which nobody asked for")
    unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        body = unpacking.decompress(reply.body, MAX_PAGE_BYTES + 1)
    except zlib.error as error:
        raise SourceAway(f"sent a damaged gzip page ({error})") from None
    if len(body) > MAX_PAGE_BYTES:
        raise SourceRefuses(_too_big().reason)
    if not unpacking.eof:
        raise SourceAway("sent a gzip page that ends too early")
    return body
