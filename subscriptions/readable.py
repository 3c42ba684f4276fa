"""readable: whether a person may read of an event, asked again whenever one is sent or shown."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from events.publish import Recorded
from subscriptions.audible import readers_of


def may_read(user: User, events: Iterable[Recorded]) -> set[int]:
    """Return the ids of those events that the user may read of."""
    groups: frozenset[str] | None = None
    found = set()
    for event in events:
        readers = readers_of(event)
        if readers is not None and user.username not in readers.users:
            if groups is None:
                groups = frozenset(user.groups.values_list("name", flat=True))
            if not readers.groups & groups:
                continue
        found.add(event.id)
    return found


def group_may_read(name: str, event: Recorded) -> bool:
    """Say whether the group as a whole may read of the event."""
    readers = readers_of(event)
    return readers is None or name in readers.groups
