"""A data broker, as `make run` has it, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.samples.protection.broker import NOBODY, DataBroker, page
from tests.servers.web import serving

__all__ = ["NOBODY", "DataBroker", "data_broker", "page"]


@contextmanager
def data_broker() -> Iterator[DataBroker]:
    """Run the broker until the block ends."""
    broker = DataBroker()
    with serving(broker.respond) as server:
        broker.url = server.url
        yield broker
