"""A service that speaks the protocol of Have I Been Pwned, as `make run` has it, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.samples.protection.hibp import (
    JSON,
    KEY,
    HibpService,
    document,
    error,
    make_breach,
)
from tests.servers.web import serving

__all__ = ["JSON", "KEY", "HibpService", "document", "error", "hibp_service", "make_breach"]


@contextmanager
def hibp_service() -> Iterator[HibpService]:
    """Run the service until the block ends."""
    service = HibpService()
    with serving(service.respond) as server:
        service.url = server.url
        yield service
