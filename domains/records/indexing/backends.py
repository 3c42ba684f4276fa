"""`IndexBackend`: an index of published records, and the list of all of them."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cache
from typing import ClassVar

from django.db.models import QuerySet

from tailrace.domains.records.models import Record
from tailrace.events.discovery import Described, import_modules

LATE_FLUSH = "late_flush AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"
"""For statements that write index entries: their commit does not wait for the disk. That of the job
which wrote them comes later and does, and it flushes what was written before it."""


class IndexUnavailable(Exception):
    """The index cannot be searched now; the message says to operators why."""


class IndexBackend(Described, ABC):
    """An index of published records. Its docstring describes it to people.

    `index` and `remove` may be called again with the same records, and late: they keep what is
    of a newer version. They run outside of a transaction; if one raises, its jobs are retried.
    """

    name: ClassVar[str]
    """The routing key of its jobs, too."""
    title: ClassVar[str]
    """What it searches by: words, meaning …"""
    batch_size: ClassVar[int] = 1
    """Records of one call."""

    @abstractmethod
    def index(self, records: Sequence[Record]) -> None:
        """Store or replace the entries of these records; none is withdrawn."""

    @abstractmethod
    def remove(self, ids: Collection[int]) -> None:
        """Remove the entries of the records with these ids, as far as there are any."""

    @abstractmethod
    def search(self, text: str, records: QuerySet[Record], limit: int) -> list[int]:
        """Return the ids of those of `records` that match, best first, at most `limit`.

        `records` are those that the user may see, and that are not withdrawn. It runs in a
        transaction with time limits. Raises IndexUnavailable."""


@cache
def backends() -> dict[str, IndexBackend]:
    """Return the backends by name: subclasses of IndexBackend in `indexing` of any app."""
    import_modules("indexing")
    every = (cls() for cls in IndexBackend.__subclasses__())
    return {backend.name: backend for backend in sorted(every, key=lambda backend: backend.name)}
