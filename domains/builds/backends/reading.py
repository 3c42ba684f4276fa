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
    """A read that has begun. If several reads overlap, the result of the one that began last is
    stored. Changes stay unread until a read that begins after their report."""

    began: datetime
    changes: tuple[int, ...]
    """Ids of the unread changes that were reported before the read began."""

    @classmethod
    def begin(cls, backend: str, project: str, package: str = "") -> Self:
        """Begin a read; call this before the request."""
        [(began, changes)] = query(_BEGIN, backend=backend, project=project, package=package)
        return cls(began, tuple(changes))

    def is_newest(self, refreshed_at: datetime | None) -> bool:
        """Return whether the stored result (of a locked row) is not from a later read."""
        return refreshed_at is None or refreshed_at <= self.began

    def finish(self) -> None:
        """Delete the changes that were read, in the transaction that stores the result."""
        if self.changes:
            UnreadChange.objects.filter(pk__in=self.changes).delete()
