"""Decide who may read an event. All pages, the API, feeds, mails and buses use this module.

    EventType.readers ──► readers_of ──► may_read    a user
                                    └──► admits      a user or a group, one event

If `EventType.readers` fails, no user may read the event. If the event's type is not declared, its
readers are undecided: during a deployment, other processes may know the type, and jobs wait for
code that does. Users with the permission `tailrace_events.view_hidden` may read all events.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import structlog
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, User
from django.db import Error as DatabaseError

from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.events.readers import NOBODY, UNDECIDED, Readers

log = structlog.get_logger(__name__)

VIEW_HIDDEN = "tailrace_events.view_hidden"

FindReaders = Callable[[Sequence[Recorded]], Mapping[int, Readers | None]]


def readers_of(events: Iterable[Recorded]) -> dict[int, Readers]:
    """Return the readers of each restricted event, by its id. `EventType.readers` is called once
    for the events of all types that inherit the same method."""
    restricted: dict[int, Readers] = {}
    by_method: dict[Any, tuple[FindReaders, list[Recorded]]] = {}
    for event in events:
        event_type = event.event_type
        if event_type is None:
            restricted[event.id] = UNDECIDED
            continue
        find: FindReaders = event_type.readers
        by_method.setdefault(getattr(find, "__func__", find), (find, []))[1].append(event)
    for find, group in by_method.values():
        readers_by_event = _find_readers(find, group)
        for event in group:
            if (readers := readers_by_event.get(event.id, NOBODY)) is not None:
                restricted[event.id] = readers
    return restricted


def only_user(events: Iterable[Any], field: str) -> dict[int, Readers | None]:
    """Return the user whose id is in this field of the payload as the only reader, by event id.
    Without such a user, the event has no readers."""
    return {id: Readers.of([login]) for id, login in logins_in(events, field).items()}


def logins_in(events: Iterable[Any], field: str) -> dict[int, str]:
    """Return the login of the user whose id is in this field of the payload, by event id; "" if the
    field or the user is missing. Users are looked up by id, since logins change."""
    user_of = {event.id: event.raw_payload.get(field) for event in events}
    model = get_user_model()
    users = model._default_manager.filter(pk__in={user for user in user_of.values() if user})
    rows = users.values_list("pk", model.USERNAME_FIELD)
    # In JSON, a UUID is text.
    names = {id if isinstance(id, int) else str(id): login for id, login in rows}
    return {id: names.get(user, "") for id, user in user_of.items()}


def _find_readers(find: FindReaders, events: Sequence[Recorded]) -> Mapping[int, Readers | None]:
    """Call `find`. If it fails, call it for each event, so that only failing events are hidden."""
    try:
        return find(events)
    except DatabaseError:
        raise
    except Exception:
        if len(events) == 1:
            log.exception("events.readers_failed", event_id=events[0].id, type=events[0].type)
            return {}
    return {id: readers for event in events for id, readers in _find_readers(find, [event]).items()}


def may_read(user: User, events: Iterable[Recorded]) -> set[int]:
    return may_read_now_or_later(user, events)[0]


def may_read_now_or_later(user: User, events: Iterable[Recorded]) -> tuple[set[int], set[int]]:
    """Return the ids of the events that the user may read, and of the undecided events, for callers
    that never check an event again."""
    events = list(events)
    restricted = readers_of(events)
    now = {
        event.id
        for event in events
        if event.id not in restricted or admits(restricted[event.id], user)
    }
    return now, {id for id, readers in restricted.items() if readers.undecided} - now


def admits(readers: Readers | None, user: User | None, group: Group | None = None) -> bool:
    """Whether the user, or the group if there is no user, is among `readers` (None: all users)."""
    if readers is None:
        return True
    if user is None:
        return group is not None and group.name in readers.groups
    return (
        (user.is_active and user.get_username() in readers.users)
        or bool(readers.groups and readers.groups & _group_names(user))
        or user.has_perm(VIEW_HIDDEN)
    )


def _group_names(user: User) -> frozenset[str]:
    """Return the names of the user's groups. They are cached in the instance."""
    if "_names_of_groups" not in user.__dict__:
        names = frozenset(user.groups.values_list("name", flat=True))
        user.__dict__["_names_of_groups"] = names
    cached: frozenset[str] = user.__dict__["_names_of_groups"]
    return cached


def logins_with(permission: str) -> list[str]:
    """Return the logins of the active users who have the permission, superusers included."""
    users = ModelBackend().with_perm(permission)
    return list(users.values_list(get_user_model().USERNAME_FIELD, flat=True))


def hidden_from(user: User, ids: Iterable[int | None]) -> set[int]:
    """Return the ids of events that the user may not read, or that do not exist."""
    wanted = {id for id in ids if id is not None}
    if not wanted or user.has_perm(VIEW_HIDDEN):
        return set()
    rows = Event.objects.filter(pk__in=wanted)
    return wanted - may_read(user, map(Recorded.from_model, rows))
