"""Collect the input of the statements in sql.py: what event types and roles return for events."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from tailrace.events.catalog.topics import topic_names
from tailrace.events.privacy.visibility import VIEW_HIDDEN, logins_with, readers_of
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.events.types import EventType
from tailrace.subscriptions.types import roles
from tailrace.subscriptions.types.subscribable import offered_channels, receiver_roles

log = structlog.get_logger(__name__)

Receiver = tuple[int, int, str, str | None, str | None]

COLUMNS = {
    "published": "event bigint, type text, subject text, actor text, hidden bool",
    "receiver": "event bigint, rank int, role text, login text, group_name text",
    "reader": "event bigint, login text, group_name text",
    "topic": "type text, name text, depth int",
    "offered": "type text, channel text",
}
"""The tables of facts in the statements. A topic's `depth` is 0 for the type's own name, 1 for its
nearest family …"""


@dataclass(slots=True)
class Facts:
    """The rows of each table in COLUMNS."""

    published: list[tuple[int, str, str, str, bool]] = field(default_factory=list)
    receiver: list[Receiver] = field(default_factory=list)
    reader: list[tuple[int, str | None, str | None]] = field(default_factory=list)
    topic: list[tuple[str, str, int]] = field(default_factory=list)
    offered: list[tuple[str, str]] = field(default_factory=list)

    def params(self) -> dict[str, list[Any]]:
        """Return the parameters of the statements: one array per column."""
        return {
            f"{table}_{column.split()[0]}": [row[index] for row in getattr(self, table)]
            for table, columns in COLUMNS.items()
            for index, column in enumerate(columns.split(", "))
        }


def facts_of(
    events: Iterable[Recorded],
    only_role: str | None = None,
    restricted: Mapping[int, Readers] | None = None,
    only_login: str | None = None,
) -> Facts:
    """Call the roles of the events' types, or only `only_role`, and return the facts: of all users,
    or only of the user `only_login`, and of groups.

    `restricted` is the result of `readers_of` for these events. Errors of a role are not caught.
    """
    facts, events = Facts(), list(events)
    types = {event.type: event.event_type for event in events if event.event_type is not None}
    events = [event for event in events if event.type in types]
    restricted = readers_of(events) if restricted is None else restricted
    readers_of_all = logins_with(VIEW_HIDDEN) if restricted else []
    for event in events:
        readers = restricted.get(event.id)
        facts.published.append(
            (event.id, event.type, event.subject, event.actor, readers is not None)
        )
        facts.receiver += [
            row
            for row in _receivers(event, types[event.type], only_role)
            if only_login is None or row[3] in (None, only_login)
        ]
        if readers is not None:
            facts.reader += [(event.id, login, None) for login in {*readers.users, *readers_of_all}]
            facts.reader += [(event.id, None, group) for group in readers.groups]
    for name, event_type in types.items():
        topics = topic_names(event_type)
        facts.topic += [(name, topic, depth) for depth, topic in enumerate(topics)]
        facts.offered += [(name, key) for key in offered_channels(event_type)]
    return facts


def _receivers(
    event: Recorded, event_type: type[EventType], only_role: str | None
) -> Iterator[Receiver]:
    for rank, name in enumerate(receiver_roles(event_type)):
        if only_role not in (None, name):
            continue
        role = roles.find(name)
        if role is None:
            log.error("audience.unknown_role", role=name, event_type=event.type)
            continue
        receivers = role(event)
        yield from ((event.id, rank, name, login, None) for login in receivers.users)
        yield from ((event.id, rank, name, None, group) for group in receivers.groups)
