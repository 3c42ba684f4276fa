"""Kinds of keys that give access without a session, such as API tokens and feeds: `ACCESS_KEYS` in
an app's `access_keys.py`, so that a user can revoke all keys at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User

from tailrace.environment.discovery import import_modules


@dataclass(frozen=True, slots=True)
class AccessKeys:
    name: str
    title: str
    """The plural that pages show: `API tokens`."""
    revoke_all: Callable[[User], None]
    """Revokes all keys of this kind of a user."""


def all_access_keys() -> Iterator[AccessKeys]:
    for module in import_modules("access_keys"):
        yield from getattr(module, "ACCESS_KEYS", ())
