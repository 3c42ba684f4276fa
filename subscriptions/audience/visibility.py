"""Whether a person may read an event, checked again whenever one is sent or shown."""

from collections.abc import Iterable
from functools import cache

from django.contrib.auth.models import Group, User

from events.publish import Recorded
from subscriptions.types.subscribable import readers_of


def may_read(user: User, events: Iterable[Recorded]) -> set[int]:
    """Return the ids of those events that the user may read."""
    readers = {event.id: readers_of(event) for event in events}
    names = cache(lambda: frozenset(user.groups.values_list("name", flat=True)))
    return {
        id
        for id, who in readers.items()
        if who is None or user.username in who.users or who.groups & names()
    }


def recipient_may_read(
    user: User | None, group: Group | None, events: Iterable[Recorded]
) -> set[int]:
    """Return the ids of those events that the user, or else the group as a whole, may read."""
    if user is not None:
        return may_read(user, events)
    name = group.name if group else ""
    readers = {event.id: readers_of(event) for event in events}
    return {id for id, who in readers.items() if who is None or name in who.groups}
