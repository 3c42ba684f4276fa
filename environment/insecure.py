"""Settings that are allowed but insecure in production: each app declares its own beside them.

`manage.py check --deploy` reports all of them.
"""

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

TLS_MODES = ("require", "verify-ca", "verify-full")
"""Of PostgreSQL's sslmode: those that never fall back to an unencrypted connection."""
INTERNAL_NETWORKS = [
    ip_network(network) for network in ("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10")
]
"""This machine, and the services of a cloud that give out its credentials."""


@dataclass(frozen=True)
class Insecure:
    """One way in which a setting is insecure in production."""

    id: str
    """`tailrace.E113`: E for errors, W for warnings, I for information."""
    setting: str
    """The environment variable."""
    problem: str
    """What is wrong with its value. `{}` is what `when` returned."""
    when: Callable[[Any], str | bool]
    """Takes the settings of its app; returns whether that is so, or which parts are concerned."""
    way_out: str
    """What to do, as a sentence."""


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
    """Return the names of the URLs that are reached over unencrypted connections."""
    return ", ".join(name for name, url in urls.items() if lacks_tls(url))


def is_guessable(key: str) -> bool:
    """Whether a key in urlsafe base64 was typed rather than made: few different bytes."""
    return len(set(base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)))) < 8


def internal_networks(networks: Iterable[str]) -> str:
    """Return the networks that contain this machine or the services of its cloud."""
    return ", ".join(
        text
        for text in networks
        if any(
            inside.version == (network := ip_network(text)).version and network.overlaps(inside)
            for inside in INTERNAL_NETWORKS
        )
    )


def _option(parts: SplitResult, name: str) -> str:
    return parse_qs(parts.query).get(name, [""])[0]
