"""Receiver roles: functions that return the holders of a role for the subject of an event.

An app declares its roles in `roles.py`, which is imported at start-up:

    @role("maintainer")
    def maintainer(event: Recorded) -> Receivers: ...

Event types list the names of their roles in `receiver_roles`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from tailrace.events.publish import Recorded


@dataclass(frozen=True, slots=True)
class Receivers:
    """The holders of a role: logins of users and names of groups. Unknown names are ignored."""

    users: frozenset[str] = field(default_factory=frozenset)
    groups: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, users: Iterable[str] = (), groups: Iterable[str] = ()) -> Self:
        """Build receivers from any iterables; empty names are left out."""
        return cls(frozenset(filter(None, users)), frozenset(filter(None, groups)))

    def __or__(self, other: "Receivers") -> "Receivers":
        return Receivers(self.users | other.users, self.groups | other.groups)

    def __bool__(self) -> bool:
        return bool(self.users or self.groups)


Find = Callable[[Recorded], Receivers]


@dataclass(frozen=True, slots=True)
class Role:
    """A registered role: call it with an event to get the role's holders."""

    name: str
    find: Find
    by_default: bool = True
    """Whether the role's default subscriptions are on."""

    def __call__(self, event: Recorded) -> Receivers:
        return self.find(event)


_registry: dict[str, Role] = {}


def role(name: str, *, by_default: bool = True) -> Callable[[Find], Find]:
    """Register the function under `name`; raise ValueError if another module declares the name."""

    def register(function: Find) -> Find:
        other = _registry.get(name)
        if other is not None and other.find.__module__ != function.__module__:
            raise ValueError(
                f"role {name!r} is declared in {other.find.__module__} and {function.__module__}"
            )
        _registry[name] = Role(name, function, by_default)
        return function

    return register


def find(name: str) -> Role | None:
    """Return the role called `name`, or None."""
    return _registry.get(name)


def role_words(name: str) -> str:
    """Return the role's name for display: `stage owner` for `stage_owner`."""
    return name.replace("_", " ")


def all_roles() -> list[Role]:
    """Return all roles, sorted by name."""
    return [_registry[name] for name in sorted(_registry)]
