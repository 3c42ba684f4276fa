"""Who is notified about an event: each rule by recipient."""

import pytest
from django.contrib.auth.models import Group
from django.test.utils import CaptureQueriesContext

from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import Block, EventSubscription, GroupAddress
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tailrace.subscriptions.types.recipient import Recipient
from tests.subscriptions.sample_domain import (
    FIRST,
    SECOND,
    Gala,
    Premiere,
    Rehearsal,
    Silence,
    assign_role,
    person,
    publish_event,
    subscribe,
)

pytestmark = pytest.mark.django_db
OFF = EventSubscription.State.OFF


@pytest.fixture(autouse=True)
def _no_defaults(db: None) -> None:
    EventSubscription.objects.all().delete()


def logins(recipients: list[Recipient], channel: str = "mail") -> set[str]:
    from django.contrib.auth.models import User

    names = dict(User.objects.values_list("id", "username"))
    return {
        names[recipient.user_id]
        for recipient in recipients
        if recipient.channel == channel and recipient.user_id is not None
    }


def test_the_default_holds_for_those_who_chose_nothing() -> None:
    ann, bob = person("ann"), person("bob")
    assign_role(FIRST, ann, bob)
    subscribe()
    assert logins(audiences([publish_event()])) == {"ann", "bob"}


def test_without_any_subscription_nobody_is_notified() -> None:
    assign_role(FIRST, person("ann"))
    assert audiences([publish_event()]) == []


def test_an_own_subscription_beats_the_default() -> None:
    ann, bob = person("ann"), person("bob")
    assign_role(FIRST, ann, bob)
    subscribe(state=OFF)
    subscribe(user=bob)
    assert logins(audiences([publish_event()])) == {"bob"}
    EventSubscription.objects.all().delete()
    subscribe()
    subscribe(user=bob, state=OFF)
    assert logins(audiences([publish_event()])) == {"ann"}


def test_a_subscription_for_a_type_beats_one_for_its_family() -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe("*", state=OFF)
    subscribe(_family(), user=ann)
    assert logins(audiences([publish_event(Gala)])) == {"ann"}
    subscribe("stage.premiere", user=ann, state=OFF)
    assert logins(audiences([publish_event(Gala)])) == set(), "the nearer parent wins"
    subscribe("stage.gala", user=ann)
    assert logins(audiences([publish_event(Gala)])) == {"ann"}
    assert logins(audiences([publish_event(Premiere)])) == set()


def _family() -> str:
    from tailrace.events.catalog.topics import topic_names

    return topic_names(Premiere)[-2]


def test_an_own_row_for_all_types_beats_a_types_default() -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe("stage.premiere")
    subscribe("*", user=ann, state=OFF)
    assert audiences([publish_event()]) == []


def test_the_actor_and_who_blocked_the_actor_are_left_out() -> None:
    ann, bob, cem = person("ann"), person("bob"), person("cem")
    assign_role(FIRST, ann, bob, cem)
    subscribe()
    Block.objects.create(user=bob, blocked=ann)
    assert logins(audiences([publish_event(actor="ann")])) == {"cem"}
    assert logins(audiences([publish_event(actor="cem")])) == {"ann", "bob"}


def test_inactive_users_and_unknown_logins_are_left_out() -> None:
    assign_role(FIRST, person("ann", active=False), person("bob"))
    from tests.subscriptions.sample_domain import Receivers, holders

    holders[FIRST] = holders[FIRST] | Receivers.of(["nobody-of-this-name"], ["no-such-group"])
    subscribe()
    assert logins(audiences([publish_event()])) == {"bob"}


def test_a_group_with_an_address_is_notified_as_one() -> None:
    team, ann = Group.objects.create(name="team"), person("ann")
    ann.groups.add(team)
    GroupAddress.objects.create(group=team, email="team@example.org")
    assign_role(FIRST, groups=(team,))
    subscribe()
    event = publish_event()
    assert audiences([event]) == [Recipient(event.id, "mail", None, team.pk, FIRST)]


def test_without_an_address_a_groups_members_are_notified() -> None:
    team, ann, bob = Group.objects.create(name="team"), person("ann"), person("bob")
    ann.groups.add(team)
    bob.groups.add(team)
    assign_role(FIRST, groups=(team,))
    subscribe(group=team)
    subscribe(user=bob, state=OFF)
    assert logins(audiences([publish_event()])) == {"ann"}


def test_a_groups_row_beats_the_default_for_its_members() -> None:
    team, ann = Group.objects.create(name="team"), person("ann")
    ann.groups.add(team)
    assign_role(FIRST, groups=(team,))
    subscribe()
    subscribe(group=team, state=OFF)
    assert audiences([publish_event()]) == []


def test_rss_reaches_those_with_a_feed_that_is_not_revoked() -> None:
    ann, bob, cem = person("ann"), person("bob"), person("cem")
    assign_role(FIRST, ann, bob, cem)
    subscribe(channel="rss")
    make_feed(ann)
    revoked, _ = make_feed(bob)
    revoked.revoked_at = revoked.created_at
    revoked.save()
    assert logins(audiences([publish_event()]), "rss") == {"ann"}


def test_rss_reaches_members_of_a_group_that_gets_the_mail() -> None:
    team, ann = Group.objects.create(name="team"), person("ann")
    ann.groups.add(team)
    make_feed(ann)
    GroupAddress.objects.create(group=team, email="team@example.org")
    assign_role(FIRST, groups=(team,))
    subscribe()
    subscribe(channel="rss")
    recipients = audiences([publish_event()])
    assert [(recipient.channel, str(recipient.key)) for recipient in recipients] == [
        ("mail", f"group:{team.pk}"),
        ("rss", f"user:{ann.pk}"),
    ]


def test_a_person_is_notified_once_by_the_first_role() -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    assign_role(SECOND, ann)
    subscribe(role=SECOND)
    assert [recipient.role for recipient in audiences([publish_event()])] == [SECOND]
    subscribe(role=FIRST)
    assert [recipient.role for recipient in audiences([publish_event()])] == [FIRST]


@pytest.mark.parametrize(
    ("pattern", "subject", "matches"),
    [
        ("devel:*", "devel:tools/hammer", True),
        ("devel:*", "home:alice/hello", False),
        ("*/hello", "home:alice/hello", True),
        ("home:alice", "home:alice/hello", False),
        ("a_c*", "abc", False),
        ("100%", "100 times", False),
        ("100%*", "100% sure", True),
        (r"a\*", r"a\b", True),
    ],
)
def test_a_pattern_limits_subjects_and_only_the_star_is_special(
    pattern: str, subject: str, matches: bool
) -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    subscribe(user=ann, subject_pattern=pattern)
    assert bool(audiences([publish_event(payload={"title": subject})])) is matches


def test_a_type_is_sent_only_by_the_channels_it_offers() -> None:
    ann = person("ann")
    make_feed(ann)
    assign_role(FIRST, ann)
    subscribe("*")
    subscribe("*", channel="rss")
    assert {recipient.channel for recipient in audiences([publish_event(Rehearsal)])} == {"rss"}
    assert audiences([publish_event(Silence)]) == []


def test_the_number_of_statements_is_constant() -> None:
    from django.db import connection

    counts = []
    subscribe()
    for size in (3, 300):
        people = [person(f"p{size}-{number}") for number in range(size)]
        for user in people[::3]:
            subscribe(user=user)
        assign_role(FIRST, *people)
        events = [publish_event() for _ in range(2)]
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert len(audiences(events)) == 2 * size
        counts.append(len(queries))
    assert counts == [1, 1]
