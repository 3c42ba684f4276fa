"""The readers of an event: users and groups. Event types declare them; see
`tailrace.events.privacy.visibility`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Readers:
    """Logins of users and names of groups. Unknown names are ignored."""

    users: frozenset[str] = field(default_factory=frozenset)
    groups: frozenset[str] = field(default_factory=frozenset)
    undecided: bool = False
    """Whether more users, or everybody, may turn out to be allowed later."""

    @classmethod
    def of(cls, users: Iterable[str] = (), groups: Iterable[str] = ()) -> Self:
        """Create an instance; empty names are left out."""
        return cls(frozenset(filter(None, users)), frozenset(filter(None, groups)))

    def __and__(self, other: "Readers") -> "Readers":
        return Readers(
            self.users & other.users,
            self.groups & other.groups,
            self.undecided or other.undecided,
        )


NOBODY = Readers()
UNDECIDED = Readers(undecided=True)
"""No user may read the event until its readers are known."""
