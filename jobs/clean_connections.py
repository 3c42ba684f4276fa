"""Check database connections after application code has used them."""

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.db import session
from tailrace.jobs.outcomes import Permanent


@contextmanager
def left_clean(who: str) -> Iterator[None]:
    """Check the connections of this thread at the end of the block, and clean or replace them.

    Raises Permanent if the block leaves a transaction open: the transaction is rolled back, so the
    work of `who` is lost.
    """
    with session.watched() as watch:
        try:
            yield
        except BaseException:
            watch.restore()
            raise
    if watch.restore():
        raise Permanent(f"{who} left a transaction open; its writes were rolled back")
