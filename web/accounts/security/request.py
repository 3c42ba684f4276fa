"""The current request, its user and the IP address of its client, for the security log."""

import ipaddress
from collections.abc import Callable
from contextvars import ContextVar

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_current: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


class CurrentRequest:
    """Middleware that makes the request available as `current()` while it is handled."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        token = _current.set(request)
        try:
            return self.get_response(request)
        finally:
            _current.reset(token)


def current() -> HttpRequest | None:
    """Return the request that is being handled; None in commands and jobs."""
    return _current.get()


def actor() -> str:
    """Return the login of the user of the current request, by session or token; "" if there is
    none."""
    request = current()
    if request is None:
        return ""
    caller = getattr(request, "auth", None)  # an API request that was authenticated
    user = caller.user if caller is not None else getattr(request, "user", None)
    return str(user.get_username()) if user is not None and user.is_authenticated else ""


def client_address(request: HttpRequest | None) -> str:
    """Return the IP address of the client; "" if it is unknown. Of X-Forwarded-For, only entries
    that a proxy in WEB_PROXIES added are used."""
    if request is None:
        return ""
    meta = request.META
    return address_behind_proxies(meta.get("REMOTE_ADDR", ""), meta.get("HTTP_X_FORWARDED_FOR", ""))


def address_behind_proxies(peer: str, forwarded_for: str) -> str:
    """Return the IP address of the client of a connection from `peer` with this header."""
    address = _parse(peer)
    entries = forwarded_for.split(",")
    # Without REMOTE_ADDR the server listens on a Unix socket, which only the proxy can reach.
    while entries and (address is None or _is_proxy(address)):
        previous_hop = _parse(entries.pop().strip())
        if previous_hop is None:
            break
        address = previous_hop
    return str(address or "")


def network(address: str) -> str:
    """Return the network that counts as one client: an IPv4 address itself, or the /48 of an IPv6
    address, since providers often assign a /48 to one customer."""
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
