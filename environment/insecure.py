"""Rules for settings that are allowed but insecure in production.

Each app declares its rules beside its settings. `manage.py check --deploy` reports violations.
"""

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

TLS_MODES = ("require", "verify-ca", "verify-full")
"""Values of PostgreSQL's sslmode that never fall back to an unencrypted connection."""
INTERNAL_NETWORKS = [
    ip_network(network) for network in ("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10")
]
"""Addresses of this machine, and of cloud metadata services, which give out credentials."""


@dataclass(frozen=True)
class Insecure:
    """One way in which a setting is insecure in production."""

    id: str
    """`tailrace.E113`: E for errors, W for warnings, I for information."""
    problem: str
    """The environment variable and what is wrong with its value: `DEBUG: is on`. `{}` is replaced
    by the return value of `when`."""
    when: Callable[[Any], str | bool]
    """Takes the app's settings; returns whether they break the rule, or the values that do."""
    way_out: str
    """How to fix it, as a sentence."""


def is_local(url: str) -> bool:
    """Whether the URL's server is on this machine: a loopback address or a unix socket."""
    parts = urlsplit(url)
    if parts.scheme in ("redis+socket", "file"):
        return True
    host = unquote(parts.hostname or _option(parts, "host"))
    return is_loopback(host) or host.startswith("/")


def is_loopback(host: str) -> bool:
    """Whether the host is this machine, or empty."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host in ("", "localhost")


def lacks_password(url: str) -> bool:
    """Whether a server on another machine would be used without password or certificate."""
    parts = urlsplit(url)
    identified = parts.password or _option(parts, "password") or _option(parts, "sslcert")
    return bool(url) and not identified and not is_local(url)


def lacks_tls(url: str) -> bool:
    """Whether a server on another machine would be used over an unencrypted connection."""
    parts = urlsplit(url)
    encrypted = (
        parts.scheme in ("https", "rediss", "amqps", "smtps", "smtp+tls", "smtp+ssl", "obs+https")
        or _option(parts, "sslmode") in TLS_MODES
    )
    return bool(url) and not encrypted and not is_local(url)


def names_without_tls(urls: dict[str, str]) -> str:
    """Return the names of the URLs that would be used over unencrypted connections, by commas."""
    return ", ".join(name for name, url in urls.items() if lacks_tls(url))


def is_guessable(key: str) -> bool:
    """Whether a key in urlsafe base64 has too few different bytes to be random."""
    return len(set(base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)))) < 8


def internal_networks(networks: Iterable[str]) -> str:
    """Return the networks that overlap with INTERNAL_NETWORKS, separated by commas."""
    return ", ".join(
        text
        for text in networks
        if any(
            internal.version == (network := ip_network(text)).version and network.overlaps(internal)
            for internal in INTERNAL_NETWORKS
        )
    )


def _option(parts: SplitResult, name: str) -> str:
    return parse_qs(parts.query).get(name, [""])[0]
