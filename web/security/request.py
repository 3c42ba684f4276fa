"""The request that is being answered, for the security log: who makes it, and from where."""

import ipaddress
from collections.abc import Callable
from contextvars import ContextVar

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_current: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


class CurrentRequest:
    """Middleware that lets `current` return the request while it is being answered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        token = _current.set(request)
        try:
            return self.get_response(request)
        finally:
            _current.reset(token)


def current() -> HttpRequest | None:
    """Return the request that is being answered; None in commands and jobs."""
    return _current.get()


def actor() -> str:
    """Return the name of the user who makes the current request, by session or token."""
    request = current()
    if request is None:
        return ""
    caller = getattr(request, "auth", None)  # an API request that was authenticated
    user = caller.user if caller is not None else getattr(request, "user", None)
    return str(user.get_username()) if user is not None and user.is_authenticated else ""


def client_address(request: HttpRequest | None) -> str:
    """Return the IP address of the client, as text; empty if there is none.

    X-Forwarded-For is read from its end, for as long as the one who added an entry is one of
    WEB_PROXIES: what a client writes into it has no effect.
    """
    if request is None:
        return ""
    address = _parse(request.META.get("REMOTE_ADDR", ""))
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    # A server behind a Unix socket has no address: the proxy is the only one who reaches it.
    while entries and (address is None or _is_proxy(address)):
        before = _parse(entries.pop().strip())
        if before is None:
            break
        address = before
    return str(address or "")


def network(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /48 of an IPv6 address, since a
    customer is often given as many as that."""
    parsed = _parse(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 48), strict=False))
    return str(parsed or "")


def _parse(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_proxy(address: Address) -> bool:
    return any(address in ipaddress.ip_network(text) for text in settings.WEB_PROXIES)
