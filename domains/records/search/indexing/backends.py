"""`IndexBackend`, the base class of indexes, and the registry of all indexes."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cache
from typing import ClassVar

from django.db.models import QuerySet

from tailrace.domains.records.models import Record
from tailrace.environment.discovery import Described, import_modules

LATE_FLUSH = "late_flush AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"
"""A CTE for statements that write index entries: their commit does not wait for the disk. The later
commit that settles the job waits, and flushes the earlier commits, too."""


class IndexUnavailable(Exception):
    """The index cannot be searched now. The message is for operators."""


class IndexBackend(Described, ABC):
    """An index of published records. The pages show its docstring as its description.

    `index` and `remove` may be called late, and several times for the same records: they must keep
    entries of newer versions. They run outside of transactions. If one raises an error, the jobs
    are retried.
    """

    name: ClassVar[str]
    """The name of the index, and the routing key of its jobs."""
    title: ClassVar[str]
    """What the index searches by: words, meaning …"""
    batch_size: ClassVar[int] = 1
    """Maximum number of records per call."""

    @abstractmethod
    def index(self, records: Sequence[Record]) -> None:
        """Store or replace the entries of these records, which are not withdrawn."""

    @abstractmethod
    def remove(self, ids: Collection[int]) -> None:
        """Remove the entries of the records with these ids, if they exist."""

    @abstractmethod
    def search(self, text: str, records: QuerySet[Record], limit: int) -> list[int]:
        """Return the ids of the matching records, the best match first, at most `limit`.

        Searches only in `records`: the records that the user may see and that are not withdrawn.
        Runs in a transaction with time limits. Raises IndexUnavailable.
        """

    def method(self) -> str:
        """Return a sentence for users about how the index searches; empty if `title` says it."""
        return ""


@cache
def backends() -> dict[str, IndexBackend]:
    """Return all indexes by name: instances of the subclasses of IndexBackend in the modules
    `search.indexing` of all apps."""
    import_modules("search.indexing")
    instances = (cls() for cls in IndexBackend.__subclasses__())
    return {index.name: index for index in sorted(instances, key=lambda index: index.name)}
