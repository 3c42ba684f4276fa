"""One event through the API: what one may see of it, who heard and why."""

import pytest
from django.contrib.auth.models import Group

from subscriptions.models import EventSubscription
from subscriptions.roles import Receivers
from tests.subscriptions.api.kit import Program, allow, problem, program
from tests.subscriptions.stage import FIRST, Premiere, happen, hold, person, subscribe

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_defaults(db: None) -> None:
    EventSubscription.objects.all().delete()


@pytest.fixture
def ann() -> Program:
    return program("ann", "events:read", may=("events.view_event",))


def test_it_is_shown_without_its_payload_but_to_whom_may_see_that(ann: Program) -> None:
    event = happen(payload={"title": "Faust"}, actor="goethe", source="ci", source_id="7")
    shown = ann.get(f"/events/{event.id}").json()
    assert shown["id"] == event.id
    assert (shown["type"], shown["subject"], shown["actor"]) == (
        "stage.premiere",
        "Faust",
        "goethe",
    )
    assert (shown["source"], shown["source_id"], shown["problem"]) == ("ci", "7", "")
    assert (shown["cause_id"], shown["payload"], shown["heard"]) == (None, None, None)
    allow(ann.user, "events.view_payload")
    assert ann.get(f"/events/{event.id}").json()["payload"] == {"title": "Faust"}


def test_it_needs_the_scope_and_the_permission(ann: Program) -> None:
    event = happen()
    problem(program("bob", "events:read").get(f"/events/{event.id}"), 403, "permission-missing")
    other = Program(ann.user, "events:write")
    problem(other.get(f"/events/{event.id}"), 403, "scope-missing")
    problem(ann.get(f"/events/{event.id + 1}"), 404)


def test_a_hidden_one_is_not_there_for_whom_may_not_read_of_it(ann: Program, monkeypatch) -> None:
    event = happen()
    readers = Receivers.of(groups=["crew"])
    monkeypatch.setattr(Premiere, "readers", classmethod(lambda cls, event: readers))
    problem(ann.get(f"/events/{event.id}"), 404)
    ann.user.groups.add(Group.objects.create(name="crew"))
    assert ann.get(f"/events/{event.id}").status_code == 200


def test_it_says_why_one_heard_or_not(ann: Program) -> None:
    hold(FIRST, ann.user)
    subscribe(user=ann.user)
    event = happen(payload={"title": "Faust"})
    found = {one["channel"]: one for one in ann.get(f"/events/{event.id}").json()["explained"]}
    assert found["mail"]["heard"] is True
    assert "own row: on for stage.premiere" in found["mail"]["why"]
    assert found["mail"]["subscription_id"] == EventSubscription.objects.get().pk
    assert found["rss"]["heard"] is False
    assert found["rss"]["why"]


def test_who_heard_and_why_others_did_is_for_those_who_may_see_it(ann: Program, run_jobs) -> None:
    bob = person("bob")
    hold(FIRST, ann.user, bob)
    subscribe()
    event = happen(actor="bob")
    run_jobs("subscriptions.notify")
    path = f"/events/{event.id}"
    problem(ann.get(path, who="bob"), 403, "permission-missing")
    assert ann.get(path, who="ann").status_code == 200
    allow(ann.user, "subscriptions.view_notification")
    found = ann.get(path, who="bob").json()
    assert found["heard"] == [{"user": "ann", "group": None, "role": FIRST}]
    mail = next(one for one in found["explained"] if one["channel"] == "mail")
    assert (mail["heard"], mail["why"]) == (False, "bob did it")
    problem(ann.get(path, who="nobody"), 422, "invalid")
