"""The options of a user, by topic, role and channel, and the setting that applies to each.

A topic is an event type, a family of event types, or `*`. A user's own setting overrides the
settings of the user's groups, which override the default. Among settings of the same owner, the one
for the nearest topic applies.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.contrib.auth.models import User
from django.db.models import Q

from tailrace.db.query import query
from tailrace.events.catalog.topics import (
    EVERYTHING,
    family_of,
    family_title,
    topic_names,
    type_title,
)
from tailrace.events.types import EventType, all_types, find_type
from tailrace.subscriptions.models import EventSubscription, Notification
from tailrace.subscriptions.types.channel import all_channels
from tailrace.subscriptions.types.subscribable import (
    is_subscribable,
    offered_channels,
    receiver_roles,
)

MAX_NOTIFICATIONS = 1000
"""The number of notifications that are examined to find the roles of a user."""


class UnknownTopic(LookupError):
    """There is no topic with this name, or it is not offered in this role by this channel."""


@dataclass(frozen=True)
class Option:
    """A topic, role and channel, and the settings that apply to them."""

    topic: "Topic"
    role: str
    channel: str
    own: EventSubscription | None
    """The user's own setting, perhaps for a wider topic."""
    groups: Sequence[EventSubscription]
    """The settings of the user's groups. Each applies if the role is held through that group."""
    default: EventSubscription | None

    @property
    def has_digests(self) -> bool:
        return all_channels()[self.channel].has_digests

    @property
    def exact(self) -> EventSubscription | None:
        """The user's own setting for exactly this topic."""
        return self.own if self.own and self.own.event_type == self.topic.name else None

    @property
    def kind(self) -> str:
        """The kind of the displayed setting: `own`, `wider` (own, for a wider topic), `default`."""
        if self.own is None:
            return "default"
        return "own" if self.exact else "wider"

    @property
    def by_type(self) -> bool:
        """Whether there is no setting for this wide topic: the defaults differ by event type."""
        return not (self.own or self.default) and self.topic.is_wide

    @property
    def label(self) -> str:
        return "by type" if self.by_type else describe(self.own or self.default)


@dataclass(frozen=True)
class Topic:
    """An event type, a family of event types, or everything."""

    name: str
    types: Sequence[type[EventType]]
    """The event types that the topic covers."""

    @property
    def title(self) -> str:
        if event_type := find_type(self.name):
            return type_title(event_type)
        return "Everything" if self.name == EVERYTHING else f"All of: {self.short_name}"

    @property
    def short_name(self) -> str:
        """The name that users see: `Requests and reviews` for `builds.request`."""
        return "Everything" if self.name == EVERYTHING else family_title(self.name, self.types[0])

    @property
    def is_wide(self) -> bool:
        """Whether the topic is a family or everything."""
        return find_type(self.name) is None

    @property
    def slug(self) -> str:
        """The name as part of an HTML id."""
        return "everything" if self.name == EVERYTHING else self.name.replace(".", "-")

    @property
    def family(self) -> str:
        """The family under which the topic is shown."""
        event_type = find_type(self.name)
        return family_of(event_type) if event_type else self.name

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of this topic and of the wider topics, nearest first."""
        names = topic_names(self.types[0])
        return names[names.index(self.name) :]

    @cached_property
    def offers(self) -> dict[str, set[str]]:
        """The offered channels by role. The roles are in the order of the event types."""
        channels: dict[str, set[str]] = defaultdict(set)
        for event_type in self.types:
            for role in receiver_roles(event_type):
                channels[role].update(offered_channels(event_type))
        return dict(channels)


def describe(row: EventSubscription | None) -> str:
    """Return a text such as `off`, `on`, `daily` or `on: devel:*`; `off` without a row."""
    if row is None or row.state == EventSubscription.State.OFF:
        return "off"
    setting = "on" if row.pace == EventSubscription.Pace.INSTANT else str(row.pace)
    return f"{setting}: {row.subject_pattern}" if row.subject_pattern else setting


def families() -> dict[str, list[type[EventType]]]:
    """Return the subscribable event types, by the family under which they are shown."""
    types: dict[str, list[type[EventType]]] = defaultdict(list)
    for event_type in all_types():
        if is_subscribable(event_type):
            types[family_of(event_type)].append(event_type)
    return dict(sorted(types.items()))


def find_topic(name: str) -> Topic:
    """Return the topic with this name, or raise UnknownTopic."""
    types = [cls for cls in all_types() if name in topic_names(cls) and is_subscribable(cls)]
    if not types:
        raise UnknownTopic(name)
    return Topic(name, types)


class UserOptions:
    """The settings that apply to a user: own settings, settings of groups, and defaults."""

    def __init__(self, user: User, topics: Iterable[Topic]) -> None:
        names = {name for topic in topics for name in topic.names}
        self._groups = list(user.groups.order_by("name").values_list("pk", flat=True))
        applicable = Q(user=user) | Q(group__in=self._groups) | Q(user=None, group=None)
        rows = EventSubscription.objects.filter(applicable, event_type__in=names)
        self._rows = {
            (row.user_id, row.group_id, row.event_type, row.role, row.channel): row
            for row in rows.select_related("group")
        }
        self._user = user.pk

    def option(self, topic: Topic, role: str, channel: str) -> Option:
        """Return the settings for the topic in this role by this channel."""
        group_rows = (self._nearest(None, group, topic, role, channel) for group in self._groups)
        return Option(
            topic=topic,
            role=role,
            channel=channel,
            own=self._nearest(self._user, None, topic, role, channel),
            groups=[row for row in group_rows if row],
            default=self._nearest(None, None, topic, role, channel),
        )

    def table(self, topic: Topic, keys: Sequence[str]) -> dict[str, list[Option | None]]:
        """Return by role one option per channel in `keys`, None if the channel is not offered."""
        return {
            role: [self.option(topic, role, key) if key in offered else None for key in keys]
            for role, offered in topic.offers.items()
        }

    def _nearest(
        self, user: int | None, group: int | None, topic: Topic, role: str, channel: str
    ) -> EventSubscription | None:
        rows = (self._rows.get((user, group, name, role, channel)) for name in topic.names)
        return next(filter(None, rows), None)


def find_option(user: User, name: str, role: str, channel: str) -> Option:
    """Return one option of the user, or raise UnknownTopic."""
    topic = find_topic(name)
    if channel not in topic.offers.get(role, ()):
        raise UnknownTopic(f"{name} as {role} by {channel}")
    return UserOptions(user, [topic]).option(topic, role, channel)


def notified_roles(user: User) -> set[str]:
    """Return the roles in which the user was notified of an event."""
    notifications = Notification.objects.filter(user=user).order_by()
    return set(notifications.values_list("role", flat=True)[:MAX_NOTIFICATIONS])


def unreachable_channels(user: User) -> dict[str, str]:
    """Return the channels that cannot reach the user, each with the reason as text."""
    channels = all_channels()
    columns = ", ".join(f"({channel.reaches_user}) IS TRUE" for channel in channels.values())
    (reached,) = query(f"SELECT {columns} FROM auth_user u WHERE u.id = %(user)s", user=user.pk)
    pairs = zip(channels.items(), reached, strict=True)
    return {key: channel.unreachable_because for (key, channel), reaches in pairs if not reaches}
