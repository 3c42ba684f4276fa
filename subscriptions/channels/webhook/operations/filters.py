"""The filter of an endpoint: which notifications of the user's subscriptions it receives."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from tailrace.environment.suggest import did_you_mean
from tailrace.events.catalog.topics import EVERYTHING, topic_names
from tailrace.events.models import Event
from tailrace.events.types import EventType, all_types, find_type
from tailrace.net.sanitize import printable
from tailrace.subscriptions.channels.webhook.operations.errors import FilterError
from tailrace.subscriptions.models import Endpoint
from tailrace.subscriptions.types.subscribable import is_subscribable, offered_channels

MAX_TYPES = 100
"""The maximum of event types and families in one filter."""
MAX_PATTERN = 200


def sent_types() -> list[type[EventType]]:
    """Return the event types that can be sent to webhooks, sorted by name."""
    return [
        event_type
        for event_type in all_types()
        if is_subscribable(event_type) and "webhook" in offered_channels(event_type)
    ]


def checked_types(names: Sequence[str]) -> list[str]:
    """Return the names, sorted and without duplicates; an empty list (all types) if `*` is in it.
    Raise FilterError for a name that is no event type or family that is sent to webhooks."""
    names = sorted({name.strip() for name in names} - {""})
    if EVERYTHING in names:
        return []
    if len(names) > MAX_TYPES:
        raise FilterError("event_types", f"choose at most {MAX_TYPES} event types or families")
    known = {name for event_type in sent_types() for name in topic_names(event_type)}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise FilterError(
                "event_types",
                f"{name[:100]!r} is not an event type or family that is sent to webhooks{hint}",
            )
    return names


def checked_pattern(pattern: str) -> str:
    """Return the subject pattern without surrounding spaces, or raise FilterError."""
    pattern = pattern.strip()
    if len(pattern) > MAX_PATTERN:
        raise FilterError("subject_pattern", f"use at most {MAX_PATTERN} characters")
    if printable(pattern) != pattern or "\n" in pattern:
        raise FilterError("subject_pattern", "control characters are not allowed in a pattern")
    return pattern


def admits(endpoint: Endpoint, type_name: str, subject: str) -> bool:
    """Return whether the endpoint's filter admits an event of this type and subject."""
    pattern = endpoint.subject_pattern
    return admits_type(endpoint, type_name) and (not pattern or matches(pattern, subject))


def admits_type(endpoint: Endpoint, type_name: str) -> bool:
    """Return whether the endpoint's filter admits events of this type, for some subject."""
    return not endpoint.event_types or not _names(type_name).isdisjoint(endpoint.event_types)


def matches(pattern: str, subject: str) -> bool:
    """Return whether the whole subject matches the pattern, in which `*` stands for any text. No
    other character is special: fnmatch gets `?` and `[` in brackets, and finds each part once."""
    return fnmatchcase(subject, re.sub(r"[?[]", r"[\g<0>]", pattern))


def event_filter(rows: Iterable[Endpoint], ids: Collection[int]) -> Callable[[Endpoint, int], bool]:
    """Return a function that takes an endpoint and the id of an event, and returns whether the
    filter of the endpoint admits the event."""
    events: dict[int, tuple[str, str]] = {}
    if any(row.event_types or row.subject_pattern for row in rows):
        known = Event.objects.filter(pk__in=ids).values_list("id", "type", "subject")
        events = {id: (type_name, subject) for id, type_name, subject in known}

    def wants(endpoint: Endpoint, event_id: int) -> bool:
        if not (endpoint.event_types or endpoint.subject_pattern):
            return True
        return event_id in events and admits(endpoint, *events[event_id])

    return wants


@lru_cache(maxsize=1000)
def _names(type_name: str) -> frozenset[str]:
    event_type = find_type(type_name)
    return frozenset(topic_names(event_type) if event_type else (type_name,))
