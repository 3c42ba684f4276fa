"""The inbox by the API: list, pages, read and unread."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from tailrace.events.models import Event
from tailrace.events.readers import NOBODY
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.models import InboxItem
from tests.subscriptions import sample_domain
from tests.subscriptions.sample_domain import Premiere, person, publish_event
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return program("ann", "inbox:read", "inbox:write")


def put(event: Any, user: Any = None, group: Any = None) -> InboxItem:
    inbox.put(event, user=user, group=group, role=sample_domain.FIRST)
    return InboxItem.objects.get(event_id=event.id, user=user, group=group)


def test_the_inbox_has_own_items_and_those_of_groups(ann: Program, clock) -> None:
    crew, others = (Group.objects.create(name=name) for name in ("crew", "others"))
    ann.user.groups.add(crew)
    put(publish_event(payload={"title": "Faust"}), user=ann.user)
    clock.step(60)
    put(publish_event(payload={"title": "Hamlet"}), group=crew)
    put(publish_event(), group=others)
    put(publish_event(), user=person("bob"))
    first, second = ann.all("/inbox")
    assert (first["event"]["subject"], first["group"]) == ("Hamlet", "crew")
    assert (second["event"]["subject"], second["group"]) == ("Faust", None)
    assert second["role"] == sample_domain.FIRST
    assert (second["events"], second["read_at"], second["last_seen_at"]) == (1, None, None)
    assert second["event"]["type"] == "stage.premiere"


def test_pages_list_items_of_the_same_time_once(ann: Program, clock) -> None:
    created = [put(publish_event(payload={"title": str(n)}), user=ann.user).pk for n in range(7)]
    at = InboxItem.objects.get(pk=created[0]).arrived_at
    InboxItem.objects.filter(pk__in=created[:4]).update(arrived_at=at)
    assert [item["id"] for item in ann.all("/inbox", limit=2)] == created[:3:-1] + created[3::-1]
    first = ann.get("/inbox", limit=3).json()
    clock.step(60)
    put(publish_event(payload={"title": "new"}), user=ann.user)
    rest = ann.all("/inbox", limit=3, cursor=first["next"])
    assert [item["id"] for item in first["items"] + rest] == created[:3:-1] + created[3::-1]


def test_read_and_unread(ann: Program, clock) -> None:
    items = [put(publish_event(payload={"title": str(n)}), user=ann.user) for n in range(3)]
    assert ann.post(f"/inbox/{items[0].pk}/read").json() == {"marked": 1}
    assert ann.post(f"/inbox/{items[0].pk}/read").json() == {"marked": 0}
    unread = [item["id"] for item in ann.all("/inbox", unread="true", limit=1)]
    assert unread == [items[2].pk, items[1].pk]
    assert ann.post("/inbox/read").json() == {"marked": 2}
    assert ann.all("/inbox", unread="true") == []
    assert ann.post(f"/inbox/{items[1].pk}/unread").json() == {"marked": 1}
    (only,) = ann.all("/inbox", unread="true")
    assert only["id"] == items[1].pk
    assert only["last_seen_at"] is not None


def test_newer_items_stay_unread(ann: Program) -> None:
    first = publish_event(payload={"title": "Faust"})
    item = put(first, user=ann.user)
    newer = publish_event(payload={"title": "Faust"})
    InboxItem.objects.filter(pk=item.pk).update(event_id=newer.id, events=2)
    assert ann.post(f"/inbox/{item.pk}/read?up_to={first.id}").json() == {"marked": 0}
    assert ann.post(f"/inbox/read?up_to={first.id}").json() == {"marked": 0}
    assert ann.post(f"/inbox/read?up_to={newer.id}").json() == {"marked": 1}
    problem(ann.post("/inbox/read?up_to=0"), 422, "invalid")


def test_rows_of_other_users_are_not_found(ann: Program) -> None:
    item = put(publish_event(), user=person("bob"))
    problem(ann.post(f"/inbox/{item.pk}/read"), 404)
    problem(ann.post(f"/inbox/{item.pk}/unread"), 404)
    assert ann.post("/inbox/read").json() == {"marked": 0}
    item.refresh_from_db()
    assert item.read_at is None


def test_a_deleted_or_unreadable_event_is_null(ann: Program, monkeypatch) -> None:
    gone, hidden, left = (
        publish_event(payload={"title": title}) for title in ("gone", "hidden", "left")
    )
    for event in (gone, hidden, left):
        put(event, user=ann.user)
    Event.objects.filter(pk=gone.id).delete()
    monkeypatch.setattr(
        Premiere,
        "readers",
        classmethod(
            lambda cls, events: {
                event.id: NOBODY if event.subject == "hidden" else None for event in events
            }
        ),
    )
    shown = ann.all("/inbox")
    assert [item["event"] and item["event"]["subject"] for item in shown] == ["left", None, None]
    assert [bool(item["thing"]) for item in shown] == [True, False, False], "it may name the event"


@pytest.mark.parametrize("cursor", ["WyJ4IiwxXQ", "WyIyMDI2LTAxLTAxIiwxXQ"])
def test_a_cursor_without_a_time_is_refused(ann: Program, cursor: str) -> None:
    problem(ann.get("/inbox", cursor=cursor), 422, "invalid")


def test_a_page_of_a_large_inbox_reads_only_its_rows(ann: Program) -> None:
    """Whoever has many items, and whatever others have: the indexes lead to one's own."""
    crew = Group.objects.create(name="crew")
    ann.user.groups.add(crew)
    bob = person("bob")
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO tailrace_subscriptions_inboxitem (user_id, thing, event_id, role, events,
                 arrived_at)
               SELECT %s, 'thing ' || n, n, 'x', 1, now() - make_interval(secs => n)
               FROM generate_series(1, 20000) AS n""",
            [bob.pk],
        )
        cursor.execute("ANALYZE tailrace_subscriptions_inboxitem")
        put(publish_event(), group=crew)
        cursor.execute("EXPLAIN " + str(inbox.of(ann.user)[:50].query))
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan on tailrace_subscriptions_inboxitem" not in plan, plan
