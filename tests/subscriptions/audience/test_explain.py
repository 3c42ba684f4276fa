"""The explanation of each reason."""

import pytest
from django.contrib.auth.models import Group

from tailrace.events.readers import Readers
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import Block, EventSubscription
from tailrace.subscriptions.notifications.audience.explain import explain
from tests.subscriptions.sample_domain import (
    FIRST,
    SECOND,
    Gala,
    Rehearsal,
    Silence,
    assign_role,
    person,
    publish_event,
    readers,
    subscribe,
)

pytestmark = pytest.mark.django_db


def explained(event, user, channel: str = "mail") -> str:
    (row,) = [row for row in explain(event, user) if row.channel == channel]
    return f"{'yes' if row.notified else 'no'}: {row.why}"


def test_it_names_the_row_that_decided() -> None:
    ann = person("ann")
    assign_role(FIRST, ann)
    assign_role(SECOND, ann)
    event = publish_event(Gala, payload={"title": "Faust"})
    assert explained(event, ann) == "yes: default: on for stage.gala (as stage owner)"
    assert explained(event, ann, "rss").startswith("no: rss cannot reach ann: no feed")
    make_feed(ann)
    subscribe("stage.premiere", SECOND, "rss", user=ann, subject_pattern="Fa*")
    subscribe("stage.gala", FIRST, "rss", user=ann, state="off")
    assert explained(event, ann, "rss") == (
        "yes: own subscription: on for stage.premiere, only Fa* (as stage watcher)"
    )


def test_each_reason_against_a_notification_is_named() -> None:
    ann, bob = person("ann"), person("bob")
    assign_role(FIRST, ann)
    assert explained(publish_event(Silence), ann) == "no: nobody is notified of stage.silence"
    assert explained(publish_event(Rehearsal), ann) == "no: stage.rehearsal is not sent by mail"
    assert (
        explained(publish_event(), bob)
        == "no: bob has none of the roles: stage owner, stage watcher"
    )
    assert explained(publish_event(actor="ann"), ann) == "no: ann caused the event"
    Block.objects.create(user=ann, blocked=bob)
    assert (
        explained(publish_event(actor="bob"), ann)
        == "no: ann has blocked bob, who caused the event"
    )
    subscribe("*", FIRST, "mail", user=ann, subject_pattern="Hamlet")
    assert explained(publish_event(payload={"title": "Faust"}), ann) == (
        "no: own subscription: on for everything, only Hamlet, and 'Faust' does not match"
        " (as stage owner)"
    )
    subscribe("stage.premiere", FIRST, "mail", user=ann, state="off")
    assert (
        explained(publish_event(), ann)
        == "no: own subscription: off for stage.premiere (as stage owner)"
    )
    readers["Secret"] = Readers()
    assert explained(publish_event(payload={"title": "Secret"}), ann) == (
        "no: ann may not read Secret, which is hidden"
    )
    ann.is_active = False
    ann.save()
    assert explained(publish_event(), ann) == "no: ann is not active"
    EventSubscription.objects.all().delete()
    ann.is_active = True
    ann.save()
    assert explained(publish_event(), ann) == "no: there is no subscription (as stage owner)"


def test_a_group_is_notified_instead_of_its_members() -> None:
    ann, group = person("ann"), Group.objects.create(name="crew")
    ann.groups.add(group)
    assign_role(FIRST, groups=(group,))
    event = publish_event()
    assert explained(event, ann) == (
        "yes: default: on for stage.premiere (as stage owner through group crew)"
    )
    (web,) = [row for row in explain(event, ann) if row.channel == "web"]
    assert (web.notified, web.group) == (False, "crew")
    assert (
        web.why
        == "group crew is notified instead of its members (as stage owner through group crew)"
    )
