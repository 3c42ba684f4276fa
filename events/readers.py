"""Who alone may read an event, as its type declares it. `tailrace.events.visibility` asks all
types."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Readers:
    """Logins of users and names of groups; unknown ones are ignored."""

    users: frozenset[str] = field(default_factory=frozenset)
    groups: frozenset[str] = field(default_factory=frozenset)
    undecided: bool = False
    """Whether it will be known later that others may read it too, or everybody."""

    @classmethod
    def of(cls, users: Iterable[str] = (), groups: Iterable[str] = ()) -> Self:
        """Build one from any iterables; empty names are left out."""
        return cls(frozenset(filter(None, users)), frozenset(filter(None, groups)))

    def __and__(self, other: "Readers") -> "Readers":
        """Return who may read what both restrict."""
        return Readers(
            self.users & other.users,
            self.groups & other.groups,
            self.undecided or other.undecided,
        )


NOBODY = Readers()
UNDECIDED = Readers(undecided=True)
"""Nobody, as long as it is not known."""
