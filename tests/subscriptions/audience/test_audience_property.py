"""The audience by SQL is the audience by brute force, and all ways of asking agree."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from tailrace.events.catalog.topics import topic_names
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import Block, EventSubscription, GroupAddress
from tailrace.subscriptions.notifications.audience.explain import explain
from tailrace.subscriptions.notifications.audience.resolve import audiences, events_of_subscription
from tailrace.subscriptions.types import roles
from tests.examples import few_and_many
from tests.subscriptions.sample_domain import (
    FIRST,
    SECOND,
    Gala,
    Premiere,
    Receivers,
    holders,
    publish_event,
    readers,
)  # fmt: skip

pytestmark = pytest.mark.once

USERS = ["u0", "u1", "u2", "u3"]
GROUPS = ["g0", "g1"]
CHANNELS = ["mail", "rss", "web"]
NAMES = list(topic_names(Gala))
PATTERNS = ["", "x*", "*y", "x/y"]
SUBJECTS = ["x/y", "x", "z"]
Receiver = tuple[str, str]
Row = tuple[str, str, str, Receiver]


@dataclass(frozen=True)
class World:
    """Everything the resolution depends on, in plain values."""

    active: frozenset[str]
    addressless: frozenset[str]
    feeds: frozenset[str]
    members: frozenset[tuple[str, str]]
    addressed: frozenset[str]
    blocks: frozenset[tuple[str, str]]
    readers: tuple[frozenset[str], frozenset[str]] | None
    roles: dict[str, tuple[frozenset[str], frozenset[str]]]
    rows: dict[Row, tuple[str, str]]
    actor: str
    subject: str
    type: type[Premiere]


def subsets(values: list[Any], least: int = 0) -> st.SearchStrategy[frozenset[Any]]:
    return st.frozensets(st.sampled_from(values), min_size=least)


receivers = st.sampled_from(
    [("default", ""), *(("user", name) for name in USERS), *(("group", name) for name in GROUPS)]
)
verdicts = st.one_of(st.tuples(st.just("on"), st.sampled_from(PATTERNS)), st.just(("off", "")))
worlds = st.builds(
    World,
    active=subsets(USERS, 3),
    addressless=st.frozensets(st.sampled_from(USERS), max_size=1),
    feeds=subsets(USERS, 2),
    members=subsets(list(product(USERS, GROUPS)), 3),
    addressed=subsets(GROUPS),
    blocks=subsets([(one, two) for one, two in product(USERS, USERS) if one != two]),
    readers=st.none() | st.tuples(subsets(USERS), subsets(GROUPS)),
    roles=st.fixed_dictionaries(
        {FIRST: st.tuples(subsets(USERS, 2), subsets(GROUPS)),
         SECOND: st.tuples(subsets(USERS, 2), subsets(GROUPS))}
    ),
    rows=st.dictionaries(
        st.tuples(
            st.sampled_from(NAMES),
            st.sampled_from([FIRST, SECOND]),
            st.sampled_from(CHANNELS),
            receivers,
        ),
        verdicts,
        min_size=20,
        max_size=50,
    ),
    actor=st.sampled_from(["", *USERS]),
    subject=st.sampled_from(SUBJECTS),
    type=st.sampled_from([Premiere, Gala]),
)  # fmt: skip


def brute_force(world: World) -> dict[tuple[str, Receiver], tuple[str, Row]]:
    """By channel and recipient: the reason, and the row that decided. Rule by rule."""
    expected: dict[tuple[str, Receiver], tuple[str, Row]] = {}
    for channel, role in product(CHANNELS, [FIRST, SECOND]):
        for recipient, via in candidates(world, role, channel):
            row = deciding(world, role, channel, recipient, via)
            if row is not None and is_on_and_matches(world, row):
                expected.setdefault((channel, recipient), (role, row))
    return expected


def rows_that_notify(world: World) -> set[Row]:
    """The rows because of which somebody is notified, even if an earlier role comes first."""
    return {
        row
        for channel, role in product(CHANNELS, [FIRST, SECOND])
        for recipient, via in candidates(world, role, channel)
        if (row := deciding(world, role, channel, recipient, via)) and is_on_and_matches(world, row)
    }


def candidates(world: World, role: str, channel: str) -> list[tuple[Receiver, str]]:
    users, groups = world.roles[role]
    recipients = [(("user", user), "") for user in users if can_be_notified(world, user, channel)]
    for group in groups:
        if channel == "web" or (channel == "mail" and group in world.addressed):
            if world.readers is None or group in world.readers[1]:
                recipients.append((("group", group), group))
            continue
        recipients += [
            (("user", user), group)
            for user, of in world.members
            if of == group and can_be_notified(world, user, channel)
        ]
    return recipients


def can_be_notified(world: World, user: str, channel: str) -> bool:
    reachable = {
        "mail": user not in world.addressless, "rss": user in world.feeds, "web": True
    }[channel]  # fmt: skip
    return (
        reachable
        and may_read(world, user)
        and user in world.active
        and user != world.actor
        and (user, world.actor) not in world.blocks
    )


def may_read(world: World, user: str) -> bool:
    if world.readers is None or user in world.readers[0]:
        return True
    return any((user, group) in world.members for group in world.readers[1])


def deciding(world: World, role: str, channel: str, recipient: Receiver, via: str) -> Row | None:
    for receiver in (recipient, ("group", via), ("default", "")):
        for name in topic_names(world.type):
            row = (name, role, channel, receiver)
            if row in world.rows:
                return row
    return None


def is_on_and_matches(world: World, row: Row) -> bool:
    state, pattern = world.rows[row]
    return state == "on" and (not pattern or fnmatchcase(world.subject, pattern))


def build(world: World) -> tuple[Recorded, dict[Row, EventSubscription]]:
    """Put the world into the database and let the event happen."""
    EventSubscription.objects.all().delete()
    users = {user.username: user for user in User.objects.bulk_create(_users(world))}
    groups = {
        group.name: group
        for group in Group.objects.bulk_create(Group(name=name) for name in GROUPS)
    }
    membership = User.groups.through
    membership.objects.bulk_create(
        membership(user=users[user], group=groups[group]) for user, group in world.members
    )
    GroupAddress.objects.bulk_create(
        GroupAddress(group=groups[group], email=f"{group}@example.org") for group in world.addressed
    )
    for user in world.feeds:
        make_feed(users[user])
    Block.objects.bulk_create(
        Block(user=users[user], blocked=users[other]) for user, other in world.blocks
    )
    for role, (logins, names) in world.roles.items():
        holders[role] = Receivers(logins, names)
    readers.clear()
    if world.readers is not None:
        readers[world.subject] = Readers(*world.readers)
    subscriptions = EventSubscription.objects.bulk_create(
        EventSubscription(
            event_type=name,
            role=role,
            channel=channel,
            user=users[who] if kind == "user" else None,
            group=groups[who] if kind == "group" else None,
            state=state,
            subject_pattern=pattern,
        )
        for (name, role, channel, (kind, who)), (state, pattern) in world.rows.items()
    )
    rows = dict(zip(world.rows, subscriptions, strict=True))
    return publish_event(world.type, actor=world.actor, payload={"title": world.subject}), rows


def _users(world: World) -> list[User]:
    return [
        User(
            username=name,
            is_active=name in world.active,
            email="" if name in world.addressless else f"{name}@example.org",
        )
        for name in USERS
    ]


@few_and_many(
    settings(
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    ),
    few=8,
    many=50,
    world=worlds,
)
@pytest.mark.django_db
def test_the_audience_is_that_of_brute_force(world: World) -> None:
    assert roles.find(FIRST) is not None
    with transaction.atomic():
        event, rows = build(world)
        users = dict(User.objects.values_list("id", "username"))
        groups = dict(Group.objects.values_list("id", "name"))
        notified = {
            (
                recipient.channel,
                ("group", groups[recipient.group_id or 0])
                if recipient.user_id is None
                else ("user", users[recipient.user_id]),
            ): recipient.role
            for recipient in audiences([event])
        }
        expected = {key: role for key, (role, _) in brute_force(world).items()}
        assert notified == expected
        matching = {key for key, row in rows.items() if events_of_subscription(row.pk, [event])}
        assert matching == rows_that_notify(world)
        for user in User.objects.all():
            explained = {
                row.channel: row for row in explain(event, user) if row.channel in CHANNELS
            }
            channels = {key for key, row in explained.items() if row.notified}
            assert channels == {key for key, who in notified if who == ("user", user.username)}, (
                explained
            )
            assert all(row.why for row in explained.values())
            for key in channels:  # the row that is named leads to the event
                assert event.id in events_of_subscription(
                    explained[key].subscription_id or 0, [event]
                )
                assert explained[key].role == notified[key, ("user", user.username)]
        transaction.set_rollback(True)
