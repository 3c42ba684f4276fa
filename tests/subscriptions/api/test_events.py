"""One event by the API: its payload, recipients and explanations."""

import pytest
from django.contrib.auth.models import Group

from tailrace.events.readers import Readers
from tailrace.subscriptions.models import EventSubscription
from tests.subscriptions.sample_domain import (
    FIRST,
    assign_role,
    person,
    publish_event,
    readers,
    subscribe,
)
from tests.web.program import Program, allow, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_defaults(db: None) -> None:
    EventSubscription.objects.all().delete()


@pytest.fixture
def ann() -> Program:
    return program("ann", "events:read", may=("tailrace_events.view_event",))


def test_the_payload_needs_a_permission(ann: Program) -> None:
    event = publish_event(payload={"title": "Faust"}, actor="goethe", source="ci", source_id="7")
    shown = ann.get(f"/events/{event.id}").json()
    assert shown["id"] == event.id
    assert (shown["type"], shown["subject"], shown["actor"]) == (
        "stage.premiere",
        "Faust",
        "goethe",
    )
    assert (shown["source"], shown["source_id"], shown["problem"]) == ("ci", "7", "")
    assert (shown["cause_id"], shown["payload"], shown["recipients"]) == (None, None, None)
    allow(ann.user, "tailrace_events.view_payload")
    assert ann.get(f"/events/{event.id}").json()["payload"] == {"title": "Faust", "note": ""}


def test_it_needs_the_scope_and_the_permission(ann: Program) -> None:
    event = publish_event()
    problem(program("bob", "events:read").get(f"/events/{event.id}"), 403, "permission-missing")
    other = Program(ann.user, "events:write")
    problem(other.get(f"/events/{event.id}"), 403, "scope-missing")
    problem(ann.get(f"/events/{event.id + 1000}"), 404)


def test_an_unreadable_event_is_not_found(ann: Program) -> None:
    event = publish_event(payload={"title": "Faust"})
    readers["Faust"] = Readers.of(groups=["crew"])
    problem(ann.get(f"/events/{event.id}"), 404)
    ann.user.groups.add(Group.objects.create(name="crew"))
    assert ann.get(f"/events/{event.id}").status_code == 200


def test_an_event_explains_its_notifications(ann: Program) -> None:
    assign_role(FIRST, ann.user)
    subscribe(user=ann.user)
    event = publish_event(payload={"title": "Faust"})
    result = {
        explanation["channel"]: explanation
        for explanation in ann.get(f"/events/{event.id}").json()["explained"]
    }
    assert result["mail"]["notified"] is True
    assert "own subscription: on for stage.premiere" in result["mail"]["why"]
    assert result["mail"]["subscription_id"] == EventSubscription.objects.get().pk
    assert result["rss"]["notified"] is False
    assert result["rss"]["why"]


def test_recipients_and_explanations_need_a_permission(ann: Program, run_jobs) -> None:
    bob = person("bob")
    assign_role(FIRST, ann.user, bob)
    subscribe()
    event = publish_event(actor="bob")
    run_jobs("subscriptions.notify")
    path = f"/events/{event.id}"
    problem(ann.get(path, who="bob"), 403, "permission-missing")
    assert ann.get(path, who="ann").status_code == 200
    allow(ann.user, "tailrace_subscriptions.view_notification")
    result = ann.get(path, who="bob").json()
    assert result["recipients"] == [{"user": "ann", "group": None, "role": FIRST}]
    mail = next(
        explanation for explanation in result["explained"] if explanation["channel"] == "mail"
    )
    assert (mail["notified"], mail["why"]) == (False, "bob caused the event")
    problem(ann.get(path, who="nobody"), 422, "invalid")
