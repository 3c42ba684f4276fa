"""matrix: all that a person can hear of, by role and channel, and whose word counts for each.

Its rows are topics: an event type, a family of them, or `*`. A person's own word on a topic beats
their group's, which beats the default; of each, the word on the nearest topic counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q

from events.types import EventType, all_types, find_type
from subscriptions import channels
from subscriptions.audible import allows, receiver_roles
from subscriptions.lineage import EVERYTHING, family_of, lineage
from subscriptions.models import EventSubscription, Notification

TOLD = 1000
"""Notifications that are looked at to say in which roles somebody was told of something."""


class NoSuchTopic(LookupError):
    """Nothing that anybody is told of goes by this name, in this role, by this channel."""


@dataclass(frozen=True)
class Spot:
    """What one word is about: a topic, in a role, by a channel; and the words there are."""

    topic: "Topic"
    role: str
    channel: str
    own: EventSubscription | None
    """The person's, perhaps on a wider topic."""
    groups: Sequence[EventSubscription]
    """Those of the person's groups: each counts where the role is held through the group."""
    default: EventSubscription | None

    @property
    def exact(self) -> EventSubscription | None:
        """The person's own row on this very topic."""
        return self.own if self.own and self.own.event_type == self.topic.name else None

    @property
    def kind(self) -> str:
        """Return whose word is shown: `own`, `wider` (own, on a wider topic) or `default`."""
        if self.own is None:
            return "default"
        return "own" if self.exact else "wider"

    @property
    def by_type(self) -> bool:
        """Whether nobody speaks of it, and it stands for types of which each has its own word."""
        return not (self.own or self.default) and self.topic.is_wide

    @property
    def words(self) -> str:
        return "by type" if self.by_type else in_words(self.own or self.default)


@dataclass(frozen=True)
class RoleRow:
    """A role of a topic: a spot for each channel of the table, None where it is not offered."""

    role: str
    spots: Sequence[Spot | None]


@dataclass(frozen=True)
class Topic:
    """An event type, a family of them, or everything."""

    name: str
    types: Sequence[type[EventType]]
    """Those that it stands for."""

    @property
    def title(self) -> str:
        if found := find_type(self.name):
            return " ".join(found.description().split()).rstrip(".") or self.name
        return "Everything" if self.name == EVERYTHING else f"All of {family_words(self.name)}"

    @property
    def is_wide(self) -> bool:
        """Whether it is a family or everything."""
        return find_type(self.name) is None

    @property
    def slug(self) -> str:
        return slug(self.name)

    @property
    def family(self) -> str:
        """The family under which it is shown."""
        found = find_type(self.name)
        return family_of(found) if found else self.name

    @cached_property
    def names(self) -> Sequence[str]:
        """Its name and the wider ones, the nearest first."""
        above = lineage(self.types[0])
        return above[above.index(self.name) :]

    @cached_property
    def offers(self) -> dict[str, set[str]]:
        """The channels of each role, the roles in the order of the types."""
        found: dict[str, set[str]] = defaultdict(set)
        for one in self.types:
            for role in receiver_roles(one):
                found[role].update(offered(one))
        return dict(found)


def slug(name: str) -> str:
    """Return the name as an id may have it."""
    return "everything" if name == EVERYTHING else name.replace(".", "-")


def family_words(name: str) -> str:
    """Return `request` for `builds.request`."""
    return "everything" if name == EVERYTHING else name.rpartition(".")[2].replace("_", " ")


def in_words(row: EventSubscription | None) -> str:
    """Return `off`, `on`, `daily`, `on: devel:*`; what no row speaks of is off."""
    if row is None or row.state == EventSubscription.State.OFF:
        return "off"
    word = "on" if row.pace == EventSubscription.Pace.INSTANT else str(row.pace)
    return f"{word}: {row.subject_pattern}" if row.subject_pattern else word


def offered(event_type: type[EventType]) -> list[str]:
    return [key for key in channels.everything() if allows(event_type, key)]


def heard_types() -> list[type[EventType]]:
    """Return the event types that somebody can hear of, by name."""
    return [one for one in all_types() if receiver_roles(one) and offered(one)]


def families() -> dict[str, list[type[EventType]]]:
    """Return the types that can be heard of, by the family under which they are shown."""
    found: dict[str, list[type[EventType]]] = defaultdict(list)
    for one in heard_types():
        found[family_of(one)].append(one)
    return dict(sorted(found.items()))


def topic(name: str) -> Topic:
    """Return the topic of this name, or raise NoSuchTopic."""
    types = [one for one in heard_types() if name in lineage(one)]
    if not types:
        raise NoSuchTopic(name)
    return Topic(name, types)


class Words:
    """The rows that speak to a person: own, of the person's groups, and the defaults."""

    def __init__(self, user: User, topics: Iterable[Topic]) -> None:
        names = {name for one in topics for name in one.names}
        groups = list(user.groups.order_by("name").values_list("pk", flat=True))
        speaking = Q(user=user) | Q(group__in=groups) | Q(user=None, group=None)
        rows = EventSubscription.objects.filter(speaking, event_type__in=names)
        self._groups = groups
        self._rows = {
            (row.user_id, row.group_id, row.event_type, row.role, row.channel): row
            for row in rows.select_related("group")
        }
        self._user = user.pk

    def spot(self, topic: Topic, role: str, channel: str) -> Spot:
        """Return what is said of the topic in this role by this channel."""
        of_groups = (self._nearest(None, one, topic, role, channel) for one in self._groups)
        return Spot(
            topic=topic,
            role=role,
            channel=channel,
            own=self._nearest(self._user, None, topic, role, channel),
            groups=[row for row in of_groups if row],
            default=self._nearest(None, None, topic, role, channel),
        )

    def table(self, topic: Topic, keys: Sequence[str]) -> list[RoleRow]:
        return [
            RoleRow(role, [self.spot(topic, role, key) if key in has else None for key in keys])
            for role, has in topic.offers.items()
        ]

    def _nearest(
        self, user: int | None, group: int | None, topic: Topic, role: str, channel: str
    ) -> EventSubscription | None:
        found = (self._rows.get((user, group, name, role, channel)) for name in topic.names)
        return next(filter(None, found), None)


def spot(user: User, name: str, role: str, channel: str) -> Spot:
    """Return one spot of the person's matrix, or raise NoSuchTopic."""
    found = topic(name)
    if channel not in found.offers.get(role, ()):
        raise NoSuchTopic(f"{name} as {role} by {channel}")
    return Words(user, [found]).spot(found, role, channel)


def told_as(user: User) -> set[str]:
    """Return the roles in which the user was told of something."""
    told = Notification.objects.filter(user=user).order_by()
    return set(told.values_list("role", flat=True)[:TOLD])


def lacking(user: User) -> dict[str, str]:
    """Return the channels that do not reach the user, and what is lacking, in words."""
    known = channels.everything()
    asked = ", ".join(f"({one.reaches_user}) IS TRUE" for one in known.values())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {asked} FROM auth_user u WHERE u.id = %s", [user.pk])
        reached = cursor.fetchone() or ()
    pairs = zip(known.items(), reached, strict=True)
    return {key: channel.lacking for (key, channel), reaches in pairs if not reaches}
