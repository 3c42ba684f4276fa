"""The order of reads of one project's or package's metadata."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.domains.builds.models import UnreadChange

_BEGIN = f"""
SELECT {clock.NOW}, array(
  SELECT id FROM tailrace_builds_unreadchange
  WHERE backend = %(backend)s AND project = %(project)s AND package = %(package)s
)
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """A read that has begun. Of several that overlap, the one that began last is stored.

    What it reads includes the changes that were reported before it began, and perhaps later ones:
    these stay unread until a read that begins after their report.
    """

    began: datetime
    changes: tuple[int, ...]
    """Ids of the unread changes that were reported before."""

    @classmethod
    def begin(cls, backend: str, project: str, package: str = "") -> Self:
        """Call it before the request. `package` is empty for the project's own metadata."""
        [(began, changes)] = query(_BEGIN, backend=backend, project=project, package=package)
        return cls(began, tuple(changes))

    def is_newest(self, refreshed_at: datetime | None) -> bool:
        """Return whether no read is stored that began later; `refreshed_at` is of a locked row."""
        return refreshed_at is None or refreshed_at <= self.began

    def finish(self) -> None:
        """Record that the changes were read, in the transaction that stores the result."""
        if self.changes:
            UnreadChange.objects.filter(pk__in=self.changes).delete()
