"""A server of open data that speaks SODA, as `make run` has it, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.samples.protection.soda import (
    LEGALS,
    MASTER,
    PARTIES,
    SodaServer,
    error,
)
from tests.servers.web import serving

__all__ = ["LEGALS", "MASTER", "PARTIES", "SodaServer", "error", "soda_server"]


@contextmanager
def soda_server() -> Iterator[SodaServer]:
    """Serve until the block is left."""
    server = SodaServer(token="token-of-tests")
    with serving(server.respond) as listening:
        server.url = listening.url
        yield server
