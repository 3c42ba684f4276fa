"""explain: the words for each reason."""

import pytest
from django.contrib.auth.models import Group

from subscriptions.explain import explain
from subscriptions.feeds import make_feed
from subscriptions.models import Block, EventSubscription
from tests.subscriptions.stage import (
    FIRST,
    SECOND,
    Gala,
    Receivers,
    Rehearsal,
    Silence,
    happen,
    hold,
    person,
    readers,
    subscribe,
)

pytestmark = pytest.mark.django_db


def said(event, user, channel: str = "mail") -> str:
    (one,) = [one for one in explain(event, user) if one.channel == channel]
    return f"{'heard' if one.heard else 'not heard'}: {one.why}"


def test_who_hears_by_default_and_by_an_own_row() -> None:
    ann = person("ann")
    hold(FIRST, ann)
    hold(SECOND, ann)
    event = happen(Gala, payload={"title": "Faust"})
    assert said(event, ann) == "heard: default: on for stage.gala (as stage owner)"
    assert said(event, ann, "rss").startswith("not heard: rss cannot reach ann: no feed")
    make_feed(ann)
    subscribe("stage.premiere", SECOND, "rss", user=ann, subject_pattern="Fa*")
    subscribe("stage.gala", FIRST, "rss", user=ann, state="off")
    assert said(event, ann, "rss") == (
        "heard: own row: on for stage.premiere, only Fa* (as stage watcher)"
    )


def test_each_reason_for_silence_has_its_words() -> None:
    ann, bob = person("ann"), person("bob")
    hold(FIRST, ann)
    assert said(happen(Silence), ann) == "not heard: nobody is told of stage.silence"
    assert said(happen(Rehearsal), ann) == "not heard: stage.rehearsal does not go out by mail"
    assert said(happen(), bob) == "not heard: bob is none of these: stage owner, stage watcher"
    assert said(happen(actor="ann"), ann) == "not heard: ann did it"
    Block.objects.create(user=ann, blocked=bob)
    assert said(happen(actor="bob"), ann) == "not heard: ann blocks bob, who did it"
    subscribe("*", FIRST, "mail", user=ann, subject_pattern="Hamlet")
    assert said(happen(payload={"title": "Faust"}), ann) == (
        "not heard: own row: on for everything, only Hamlet, and 'Faust' does not match"
        " (as stage owner)"
    )
    subscribe("stage.premiere", FIRST, "mail", user=ann, state="off")
    assert said(happen(), ann) == "not heard: own row: off for stage.premiere (as stage owner)"
    readers["Secret"] = Receivers()
    assert said(happen(payload={"title": "Secret"}), ann) == (
        "not heard: ann may not read of Secret, which is hidden"
    )
    ann.is_active = False
    ann.save()
    assert said(happen(), ann) == "not heard: ann is not active"
    EventSubscription.objects.all().delete()
    ann.is_active = True
    ann.save()
    assert said(happen(), ann) == "not heard: no row speaks of it (as stage owner)"


def test_a_group_that_hears_as_one_stands_for_its_members() -> None:
    ann, group = person("ann"), Group.objects.create(name="crew")
    ann.groups.add(group)
    hold(FIRST, groups=(group,))
    event = happen()
    assert said(event, ann) == (
        "heard: default: on for stage.premiere (as stage owner through group crew)"
    )
    (web,) = [one for one in explain(event, ann) if one.channel == "web"]
    assert (web.heard, web.group) == (False, "crew")
    assert web.why == "group crew hears as one, not its members (as stage owner through group crew)"
