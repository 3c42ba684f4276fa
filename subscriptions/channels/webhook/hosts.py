"""The limit of a site: what all endpoints there, of whichever users, are sent per second.

A site is a registered domain with all hosts below it, since who owns a domain makes any number of
them; or an IP address.
"""

import ipaddress
from functools import cache

import httpx
from django.conf import settings
from publicsuffixlist import PublicSuffixList

from tailrace.jobs.destinations import rate_limit

QUEUE = "subscriptions.webhook"


def host_limit(url: str) -> tuple[str, float]:
    """Return the name of the limit of the URL's site, and its messages per second."""
    return f"host:{site_of(url)[:200]}", float(settings.WEBHOOK_HOST_PER_SECOND)


def wait_for(url: str) -> float:
    """Take one message from the limit of the URL's site; return 0, or the seconds to wait."""
    name, rate = host_limit(url)
    return rate_limit.take_token(f"{QUEUE}:{name}", rate, rate)


def site_of(url: str) -> str:
    """Return the registered domain of the URL's host (the host if it has none), or its address."""
    host = httpx.URL(url).raw_host.decode("ascii").rstrip(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return str(_suffixes().privatesuffix(host) or host)


@cache
def _suffixes() -> PublicSuffixList:
    """The list that the package contains: the suffixes below which everybody may register."""
    return PublicSuffixList()
