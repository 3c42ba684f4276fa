"""Check URLs from users, against server-side request forgery. `check_url` checks scheme, host and
port of a URL when it is saved and before each request. `public_addresses` is called for each
connection: it looks the host up once, refuses it if any of its addresses is not public, and returns
the checked addresses. Connections use only these."""

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence

import httpx
from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
"""Takes a host and a port; returns the host's IP addresses as text, or raises OSError."""

ALLOW_HTTP = " (or set WEBHOOK_ALLOW_HTTP)"
ALLOW_ADDRESS = " (an administrator can allow it with WEBHOOK_ALLOWED_NETWORKS)"
"""How to allow a refused address. Callers with a setting of their own give its name instead."""
MAX_URL_LENGTH = 2000
WEB_PORTS = (80, 443)
FIRST_FREE_PORT = 1024
# Services that often run behind a firewall and need no login.
INTERNAL_SERVICE_PORTS = frozenset(
    (1099, 1433, 1521, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5432, 5433, 5672,
     5900, 5984, 6000, 6379, 6380, 6443, 7001, 8500, 9042, 9092, 9160, 9200, 9300, 10250, 10255,
     11211, 15672, 25672, 27017, 27018, 28017, 50000, 61616)
)  # fmt: skip

# From https://www.iana.org/assignments/iana-ipv4-special-registry and the registry for IPv6. Not
# Python's is_global, which changes from release to release.
_SPECIAL_IPV4 = [
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by a carrier (CGNAT)"),
    ("127.0.0.0/8", "this machine"),
    ("168.63.129.16/32", "a cloud's metadata"),
    ("169.254.0.0/16", "link-local, a cloud's metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "for documentation"),
    ("192.31.196.0/24", "reserved (AS112)"),
    ("192.52.193.0/24", "reserved (AMT)"),
    ("192.88.99.0/24", "a 6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "reserved (AS112)"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
]
# In IPv6 only 2000::/3 is public, and not all of it. Ranges outside it are listed here only for the
# error message.
_SPECIAL_IPV6 = [
    ("::/128", "unspecified"),
    ("::1/128", "this machine"),
    ("::ffff:0:0/96", "an embedded IPv4 address"),
    ("::ffff:0:0:0/96", "an embedded IPv4 address"),
    ("::/96", "an embedded IPv4 address"),
    ("64:ff9b::/96", "an embedded IPv4 address (NAT64)"),
    ("64:ff9b:1::/48", "an embedded IPv4 address (NAT64)"),
    ("2001::/32", "an embedded IPv4 address (Teredo)"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "an embedded IPv4 address (6to4)"),
    ("2620:4f:8000::/48", "reserved (AS112)"),
    ("3fff::/20", "for documentation"),
    ("fc00::/7", "private (ULA)"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
]
_SPECIAL = [(ipaddress.ip_network(text), use) for text, use in (*_SPECIAL_IPV4, *_SPECIAL_IPV6)]
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_AUTHORITY = re.compile(r"^[^:/?#]*:?/*([^/?#]*).*$", re.DOTALL)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class AddressRefused(ValueError):
    """Nothing may be sent to this address. The message never contains the URL's path or query."""


def check_url(text: str) -> httpx.URL:
    """Return the URL without its fragment. Raises AddressRefused if nothing may be sent to it."""
    if len(text) > MAX_URL_LENGTH:
        raise AddressRefused(f"the URL has {len(text)} characters; the maximum is {MAX_URL_LENGTH}")
    if any(char <= " " or char in "\\\x7f" or char.isspace() for char in text):
        raise AddressRefused(
            "the URL has a space, a backslash or a control character: encode it, such as %20"
        )
    try:
        url = httpx.URL(text)
        host, port = url.raw_host.decode("ascii").lower(), url.port
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise AddressRefused(
            f"not a valid URL, such as https://example.org/hook: {error}"
        ) from None
    if url.scheme not in ("https", "http"):
        raise AddressRefused(f"the scheme {url.scheme!r} is not supported: use https://")
    if url.userinfo or "@" in _AUTHORITY.sub(r"\1", text):
        raise AddressRefused(
            "the URL has a user name before its host: put a token into the path or query"
        )
    _check_host(host)
    if url.scheme == "http" and not (settings.WEBHOOK_ALLOW_HTTP or _is_allowed(host)):
        raise AddressRefused(f"http:// is not encrypted: use https://{ALLOW_HTTP}")
    _check_port(port)
    return url.copy_with(fragment=None)


def check_address(text: str) -> None:
    """Raise AddressRefused if the IP address is neither public nor in WEBHOOK_ALLOWED_NETWORKS."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise AddressRefused(f"{text[:100]!r} is not an IP address") from None
    use = _special_use(address)
    if use and not _is_allowed(text):
        raise AddressRefused(f"{text} is not a public address: {use}{ALLOW_ADDRESS}")


def public_addresses(host: str, port: int, resolve: Resolver) -> list[str]:
    """Look the host up once and return its addresses.

    Raises AddressRefused if any address is not public, and OSError if there is none.
    """
    addresses = list(dict.fromkeys(resolve(host, port)))
    if not addresses:
        raise OSError(f"{host} has no address")
    for address in addresses:
        check_address(address)
    return addresses


def system_resolver(host: str, port: int) -> list[str]:
    """Look the host up with this machine's resolver; return its addresses. Raises OSError."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that the IDNA codec does not accept
        raise OSError(f"{host!r} cannot be looked up: {error}") from None
    return [str(entry[4][0]) for entry in entries]


def _check_host(host: str) -> None:
    if not host:
        raise AddressRefused("the URL has no host: write https://example.org/hook")
    if "%" in host:
        raise AddressRefused(f"{host[:100]!r} has a zone or an escape: write the plain host name")
    if ":" in host:
        check_address(host)
        return
    if host.endswith("."):
        raise AddressRefused(f"{host[:100]!r} ends with a dot: remove it")
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise AddressRefused(f"{host[:100]!r} is not a host name, such as example.org")
    if _NUMBER.fullmatch(labels[-1]):
        # Some programs read 2130706433, 0177.1 and 0x7f.1 as addresses; here only dotted decimals
        # are accepted.
        check_address(host)
    elif labels[-1] == "localhost":
        check_address("127.0.0.1")


def _check_port(port: int | None) -> None:
    if port is None or port in WEB_PORTS:
        return
    if not FIRST_FREE_PORT <= port <= 65535 or port in INTERNAL_SERVICE_PORTS:
        raise AddressRefused(
            f"port {port} is reserved: use 443, or a port from 1024 on such as 8443"
        )


def _special_use(address: Address) -> str:
    """Return the use of an address that is not public, such as `private`; empty if it is public."""
    for network, use in _SPECIAL:
        if address in network:
            return use
    if address.version == 6 and address not in _PUBLIC_IPV6:
        return "not assigned"
    return ""


def _is_allowed(host: str) -> bool:
    """Whether the host is an IP address, or localhost, in WEBHOOK_ALLOWED_NETWORKS."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(text) for text in settings.WEBHOOK_ALLOWED_NETWORKS)
