"""Who hears of an event: the rules one by one."""

import pytest
from django.contrib.auth.models import Group
from django.test.utils import CaptureQueriesContext

from subscriptions.audience import Heard, audience, audiences
from subscriptions.feeds import make_feed
from subscriptions.models import Block, EventSubscription, GroupAddress
from tests.subscriptions.stage import (
    FIRST,
    SECOND,
    Gala,
    Premiere,
    Rehearsal,
    Silence,
    happen,
    hold,
    person,
    subscribe,
)

pytestmark = pytest.mark.django_db
OFF = EventSubscription.State.OFF


@pytest.fixture(autouse=True)
def _no_defaults(db: None) -> None:
    EventSubscription.objects.all().delete()


def logins(heard: list[Heard], channel: str = "mail") -> set[str]:
    from django.contrib.auth.models import User

    names = dict(User.objects.values_list("id", "username"))
    return {
        names[one.user_id] for one in heard if one.channel == channel and one.user_id is not None
    }


def test_the_default_row_speaks_for_those_who_chose_nothing() -> None:
    ann, bob = person("ann"), person("bob")
    hold(FIRST, ann, bob)
    subscribe()
    assert logins(audience(happen())) == {"ann", "bob"}


def test_without_any_row_nobody_hears() -> None:
    hold(FIRST, person("ann"))
    assert audience(happen()) == []


def test_an_own_row_beats_the_default_on_or_off() -> None:
    ann, bob = person("ann"), person("bob")
    hold(FIRST, ann, bob)
    subscribe(state=OFF)
    subscribe(user=bob)
    assert logins(audience(happen())) == {"bob"}
    EventSubscription.objects.all().delete()
    subscribe()
    subscribe(user=bob, state=OFF)
    assert logins(audience(happen())) == {"ann"}


def test_a_row_for_the_family_holds_for_its_types_until_one_for_the_type_says_otherwise() -> None:
    ann = person("ann")
    hold(FIRST, ann)
    subscribe("*", state=OFF)
    subscribe(_family(), user=ann)
    assert logins(audience(happen(Gala))) == {"ann"}
    subscribe("stage.premiere", user=ann, state=OFF)
    assert logins(audience(happen(Gala))) == set(), "the nearer parent wins"
    subscribe("stage.gala", user=ann)
    assert logins(audience(happen(Gala))) == {"ann"}
    assert logins(audience(happen(Premiere))) == set()


def _family() -> str:
    from subscriptions.lineage import lineage

    return lineage(Premiere)[-2]


def test_an_own_row_for_all_types_beats_a_default_for_the_type() -> None:
    ann = person("ann")
    hold(FIRST, ann)
    subscribe("stage.premiere")
    subscribe("*", user=ann, state=OFF)
    assert audience(happen()) == []


def test_the_actor_and_those_who_blocked_the_actor_hear_nothing() -> None:
    ann, bob, cem = person("ann"), person("bob"), person("cem")
    hold(FIRST, ann, bob, cem)
    subscribe()
    Block.objects.create(user=bob, blocked=ann)
    assert logins(audience(happen(actor="ann"))) == {"cem"}
    assert logins(audience(happen(actor="cem"))) == {"ann", "bob"}


def test_inactive_users_and_unknown_logins_are_nobody() -> None:
    hold(FIRST, person("ann", active=False), person("bob"))
    from tests.subscriptions.stage import Receivers, holders

    holders[FIRST] = holders[FIRST] | Receivers.of(["nobody-of-this-name"], ["no-such-group"])
    subscribe()
    assert logins(audience(happen())) == {"bob"}


def test_a_group_with_an_address_hears_once_and_its_members_do_not() -> None:
    team, ann = Group.objects.create(name="team"), person("ann")
    ann.groups.add(team)
    GroupAddress.objects.create(group=team, email="team@example.org")
    hold(FIRST, groups=(team,))
    subscribe()
    event = happen()
    assert audience(event) == [Heard(event.id, "mail", None, team.pk, FIRST)]


def test_a_group_without_an_address_hears_as_its_members_one_of_whom_declines() -> None:
    team, ann, bob = Group.objects.create(name="team"), person("ann"), person("bob")
    ann.groups.add(team)
    bob.groups.add(team)
    hold(FIRST, groups=(team,))
    subscribe(group=team)
    subscribe(user=bob, state=OFF)
    assert logins(audience(happen())) == {"ann"}


def test_a_groups_row_beats_the_default_for_its_members() -> None:
    team, ann = Group.objects.create(name="team"), person("ann")
    ann.groups.add(team)
    hold(FIRST, groups=(team,))
    subscribe()
    subscribe(group=team, state=OFF)
    assert audience(happen()) == []


def test_rss_reaches_those_with_a_feed_that_is_not_revoked() -> None:
    ann, bob, cem = person("ann"), person("bob"), person("cem")
    hold(FIRST, ann, bob, cem)
    subscribe(channel="rss")
    make_feed(ann)
    revoked, _ = make_feed(bob)
    revoked.revoked_at = revoked.created_at
    revoked.save()
    assert logins(audience(happen()), "rss") == {"ann"}


def test_members_hear_by_rss_of_what_their_group_hears_by_mail() -> None:
    team, ann = Group.objects.create(name="team"), person("ann")
    ann.groups.add(team)
    make_feed(ann)
    GroupAddress.objects.create(group=team, email="team@example.org")
    hold(FIRST, groups=(team,))
    subscribe()
    subscribe(channel="rss")
    heard = audience(happen())
    assert [(one.channel, one.recipient) for one in heard] == [
        ("mail", f"group:{team.pk}"),
        ("rss", f"user:{ann.pk}"),
    ]


def test_one_person_hears_once_for_the_first_role_that_brings_it() -> None:
    ann = person("ann")
    hold(FIRST, ann)
    hold(SECOND, ann)
    subscribe(role=SECOND)
    assert [one.role for one in audience(happen())] == [SECOND]
    subscribe(role=FIRST)
    assert [one.role for one in audience(happen())] == [FIRST]


@pytest.mark.parametrize(
    ("pattern", "subject", "hears"),
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
def test_a_pattern_narrows_a_row_and_only_the_star_is_special(
    pattern: str, subject: str, hears: bool
) -> None:
    ann = person("ann")
    hold(FIRST, ann)
    subscribe(user=ann, subject_pattern=pattern)
    assert bool(audience(happen(payload={"title": subject}))) is hears


def test_a_type_is_heard_by_the_channels_it_offers_alone() -> None:
    ann = person("ann")
    make_feed(ann)
    hold(FIRST, ann)
    subscribe("*")
    subscribe("*", channel="rss")
    assert {one.channel for one in audience(happen(Rehearsal))} == {"rss"}
    assert audience(happen(Silence)) == []


def test_the_number_of_statements_does_not_follow_the_number_of_receivers() -> None:
    from django.db import connection

    counts = []
    subscribe()
    for size in (3, 300):
        people = [person(f"p{size}-{number}") for number in range(size)]
        for one in people[::3]:
            subscribe(user=one)
        hold(FIRST, *people)
        events = [happen() for _ in range(2)]
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert len(audiences(events)) == 2 * size
        counts.append(len(queries))
    assert counts == [1, 1]
