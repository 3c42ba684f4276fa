"""Receiver roles: functions that say who stands in a relation to what an event is about.

An app declares its roles in `roles.py`:

    @role("maintainer")
    def maintainer(event: Recorded) -> Receivers: ...

They are found at start, and event types name them in `receiver_roles`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from events.publish import Recorded
from events.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class Receivers:
    """Who holds a role: logins of users and names of groups. Unknown ones do no harm."""

    users: frozenset[str] = field(default_factory=frozenset)
    groups: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, users: Iterable[str] = (), groups: Iterable[str] = ()) -> Self:
        """Build one from any iterables; empty names are left out."""
        return cls(frozenset(filter(None, users)), frozenset(filter(None, groups)))

    def __or__(self, other: "Receivers") -> "Receivers":
        return Receivers(self.users | other.users, self.groups | other.groups)

    def __bool__(self) -> bool:
        return bool(self.users or self.groups)


Find = Callable[[Recorded], Receivers]


@dataclass(frozen=True, slots=True)
class Role:
    """A registered role: call it with an event to learn who holds it."""

    name: str
    find: Find
    by_default: bool = True
    """Whether its holders hear of an event unless somebody chose otherwise."""

    def __call__(self, event: Recorded) -> Receivers:
        return self.find(event)


class UnknownRole(LookupError):
    """No app declares a role of this name."""


_registry: dict[str, Role] = {}


def role(name: str, *, by_default: bool = True) -> Callable[[Find], Find]:
    """Register the function under `name`; a second function of that name is an error."""

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
    return _registry.get(name)


def get(name: str) -> Role:
    """Return the role called `name`, or raise UnknownRole with a suggestion."""
    found = find(name)
    if found is None:
        raise UnknownRole(f"no role is called {name!r}{did_you_mean(name, _registry)}")
    return found


def everything() -> list[Role]:
    """Return every role, by name."""
    return [_registry[name] for name in sorted(_registry)]
