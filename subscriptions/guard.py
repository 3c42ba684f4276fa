"""guard: which addresses may be sent to, when users choose them (server-side request forgery).

`check_url` is asked when an address is saved and again when something is sent to it: scheme, host
and port. `addresses_of` is asked at each connection: it looks the name up once, refuses it if any
of its addresses is not public, and returns what was checked, which is what is connected to.
"""

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence

import httpx
from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a name as text, or raises OSError."""

LONGEST_URL = 2000
PORTS = (80, 443)
FIRST_FREE_PORT = 1024
# Services that stand behind firewalls and believe whoever reaches them.
SERVICES = frozenset(
    (1099, 1433, 1521, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5432, 5433, 5672,
     5900, 5984, 6000, 6379, 6380, 6443, 7001, 8500, 9042, 9092, 9160, 9200, 9300, 10250, 10255,
     11211, 15672, 25672, 27017, 27018, 28017, 50000, 61616)
)  # fmt: skip

# https://www.iana.org/assignments/iana-ipv4-special-registry and its sister for IPv6. Python's own
# is_global changes from release to release, so the lists stand here.
_REFUSED_4 = [
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "a carrier's own (CGNAT)"),
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
# Of IPv6 only 2000::/3 is public, and not all of it; those outside are here for their names.
_REFUSED_6 = [
    ("::/128", "unspecified"),
    ("::1/128", "this machine"),
    ("::ffff:0:0/96", "an IPv4 address in disguise"),
    ("::ffff:0:0:0/96", "an IPv4 address in disguise"),
    ("::/96", "an IPv4 address in disguise"),
    ("64:ff9b::/96", "an IPv4 address in disguise (NAT64)"),
    ("64:ff9b:1::/48", "an IPv4 address in disguise (NAT64)"),
    ("2001::/32", "an IPv4 address in disguise (Teredo)"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "an IPv4 address in disguise (6to4)"),
    ("2620:4f:8000::/48", "reserved (AS112)"),
    ("3fff::/20", "for documentation"),
    ("fc00::/7", "private (ULA)"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
]
_REFUSED = [(ipaddress.ip_network(text), words) for text, words in (*_REFUSED_4, *_REFUSED_6)]
_PUBLIC_6 = ipaddress.ip_network("2000::/3")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_AUTHORITY = re.compile(r"^[^:/?#]*:?/*([^/?#]*).*$", re.DOTALL)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class Refused(ValueError):
    """It is not sent to. The text names the value and the way out, and no token of the URL."""


def check_url(text: str) -> httpx.URL:
    """Return the URL as it is used, without a fragment; Refused if nothing may be sent to it."""
    if len(text) > LONGEST_URL:
        raise Refused(f"the URL has {len(text)} characters; {LONGEST_URL} at most")
    if any(sign <= " " or sign in "\\\x7f" or sign.isspace() for sign in text):
        raise Refused("the URL has a blank, a backslash or a control character: write it as %20 …")
    try:
        url = httpx.URL(text)
        host, port = url.raw_host.decode("ascii").lower(), url.port
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise Refused(f"this is no URL, such as https://example.org/hook: {error}") from None
    if url.scheme not in ("https", "http"):
        raise Refused(f"{url.scheme or 'nothing'}: is no scheme to send to; use https://")
    if url.userinfo or "@" in _AUTHORITY.sub(r"\1", text):
        raise Refused("the URL has a user before its host: put a token into its path or query")
    _check_host(host)
    if url.scheme == "http" and not (settings.WEBHOOK_ALLOW_HTTP or _is_allowed(host)):
        raise Refused("http:// would go unencrypted: use https:// (or WEBHOOK_ALLOW_HTTP)")
    _check_port(port)
    return url.copy_with(fragment=None)


def check_address(text: str) -> None:
    """Refuse an address that is not public, unless WEBHOOK_ALLOWED_NETWORKS has it."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Refused(f"{text[:100]!r} is no address") from None
    words = _why_not(address)
    if words and not _is_allowed(text):
        raise Refused(
            f"{text} is not a public address: {words}"
            " (who runs Tailrace can allow it by WEBHOOK_ALLOWED_NETWORKS)"
        )


def addresses_of(host: str, port: int, resolve: Resolver) -> list[str]:
    """Look the host up, once, and return its addresses; Refused if any of them is not public.

    Raises OSError if it has none.
    """
    found = list(dict.fromkeys(resolve(host, port)))
    if not found:
        raise OSError(f"{host} has no address")
    for address in found:
        check_address(address)
    return found


def ask_system(host: str, port: int) -> list[str]:
    """The resolver of this machine."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that its codec for names does not take
        raise OSError(f"{host!r} cannot be looked up: {error}") from None
    return [str(entry[4][0]) for entry in found]


def _check_host(host: str) -> None:
    if not host:
        raise Refused("the URL has no host: write https://example.org/hook")
    if "%" in host:
        raise Refused(f"{host[:100]!r} has a zone or an escape: write the host's plain name")
    if ":" in host:
        check_address(host)
        return
    if host.endswith("."):
        raise Refused(f"{host[:100]!r} ends with a dot: write it without")
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise Refused(f"{host[:100]!r} is no host name, such as example.org")
    if _NUMBER.fullmatch(labels[-1]):
        # Other programs read 2130706433, 0177.1 and 0x7f.1 as addresses: only one form is taken.
        check_address(host)
    elif labels[-1] == "localhost":
        check_address("127.0.0.1")


def _check_port(port: int | None) -> None:
    if port is None or port in PORTS:
        return
    if not FIRST_FREE_PORT <= port <= 65535 or port in SERVICES:
        raise Refused(f"port {port} is another service's: use 443, or one from 1024 such as 8443")


def _why_not(address: Address) -> str:
    """Return what keeps the address from being public, in words; nothing if it is."""
    for network, words in _REFUSED:
        if address in network:
            return words
    if address.version == 6 and address not in _PUBLIC_6:
        return "not assigned"
    return ""


def _is_allowed(host: str) -> bool:
    """Whether the host is an address, or localhost, in one of WEBHOOK_ALLOWED_NETWORKS."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(text) for text in settings.WEBHOOK_ALLOWED_NETWORKS)
