"""The rate limit of a site, for the endpoints of all users together. A site is an IP address, or a
registered domain with all of its hosts, since its owner can create any number of hosts."""

import ipaddress
from functools import cache

import httpx
from django.conf import settings
from publicsuffixlist import PublicSuffixList

from tailrace.jobs.destinations import rate_limit

QUEUE = "subscriptions.webhook"


def host_limit(url: str) -> tuple[str, float]:
    """Return the name of the rate limit of the URL's site, and its messages per second."""
    return f"host:{site_of(url)[:200]}", float(settings.WEBHOOK_HOST_PER_SECOND)


def wait_for(url: str) -> float:
    """Count one message to the URL's site; return the seconds to wait, 0 below its limit."""
    name, rate = host_limit(url)
    return rate_limit.take_token(f"{QUEUE}:{name}", rate, rate)


def site_of(url: str) -> str:
    """Return the registered domain of the URL's host, else the host, or its IP address."""
    host = httpx.URL(url).raw_host.decode("ascii").rstrip(".")
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return str(_suffixes().privatesuffix(host) or host)


@cache
def _suffixes() -> PublicSuffixList:
    """Return the list of public suffixes that the package contains."""
    return PublicSuffixList()
