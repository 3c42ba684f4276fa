"""What lets others act or read for a user without a session: apps declare it in `access_keys.py`,
so that a user can revoke everything at once. This module has API tokens."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User

from tailrace.events.discovery import import_modules
from tailrace.web import tokens


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """One kind of such keys."""

    name: str
    title: str
    """In the plural, as people read it: `API tokens`."""
    revoke_all: Callable[[User], None]
    """Revokes all of the user's."""


def all_access_keys() -> Iterator[AccessKeys]:
    """Yield the kinds of all apps."""
    for module in import_modules("access_keys"):
        yield from getattr(module, "ACCESS_KEYS", ())


def _revoke_tokens(user: User) -> None:
    for token in tokens.active(user):
        tokens.revoke(token)


ACCESS_KEYS = [AccessKeys("tokens", "API tokens", _revoke_tokens)]
