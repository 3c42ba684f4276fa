"""Database connections that foreign code has used, proved clean for whatever uses them next."""

from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.db import session
from tailrace.jobs.outcomes import Permanent


@contextmanager
def left_clean(who: str) -> Iterator[None]:
    """Prove the connections of this thread clean at the end of the block, or replace them.

    Permanent if the block leaves a transaction open: it is rolled back, so `who` has not done its
    work.
    """
    with session.watched() as watch:
        try:
            yield
        except BaseException:
            watch.restore()
            raise
    if watch.restore():
        raise Permanent(f"{who} left a transaction open; what it wrote is rolled back")
