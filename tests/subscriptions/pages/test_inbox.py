"""The page of the inbox: order, pages, read and unread."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.http import HttpResponse

from tailrace.db.pagination import encode
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.models import InboxItem
from tailrace.subscriptions.pages import inbox as inbox_page
from tests.subscriptions.sample_domain import FIRST, person, publish_event, readers
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
HERE = "/me/inbox"


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


def _put(owner: Any, title: str, **fields: Any) -> tuple[Recorded, InboxItem]:
    event = publish_event(payload={"title": title}, **fields)
    group = owner if isinstance(owner, Group) else None
    inbox.put(event, user=None if group else owner, group=group, role=FIRST)
    return event, InboxItem.objects.get(event_id=event.id, group=group)


def _shown(answer: HttpResponse) -> list[str]:
    """Return the ids of the items, in their order."""
    return re.findall(r'id="item-(\d+)"', answer.content.decode())


def _read(row: InboxItem) -> bool:
    row.refresh_from_db()
    return row.read_at is not None


def test_an_empty_inbox_has_a_message(ann: Visitor) -> None:
    assert "Your inbox is empty." in ann.text(HERE)


def test_unread_items_come_first_newest_first(ann: Visitor, clock) -> None:
    rows = []
    for number in range(4):
        rows.append(_put(ann.user, f"P{number}")[1])
        clock.step(60)
    inbox.mark(ann.user, [rows[3].pk, rows[1].pk], read=True)
    answer = ann.get(HERE)
    assert _shown(answer) == [str(rows[number].pk) for number in (2, 0, 3, 1)]
    assert answer.content.decode().count("me-unread") == 2
    only = ann.get(f"{HERE}?unread")
    assert _shown(only) == [str(rows[number].pk) for number in (2, 0)]


def test_items_show_their_kind_and_whether_they_are_read(ann: Visitor) -> None:
    _put(ann.user, "Faust")
    _event, row = _put(ann.user, "Hamlet")
    inbox.mark(ann.user, [row.pk], read=True)
    html = ann.get(HERE).content.decode()
    assert html.count("me-kind me-kind-") == 2
    assert 'me-item me-read"' in html
    assert 'me-item me-unread"' in html
    assert html.count('aria-label="unread"') == 1
    assert "Play" in ann.text(HERE), "the title of its family"


def test_pages_continue_from_unread_to_read_items(ann: Visitor, monkeypatch, clock) -> None:
    monkeypatch.setattr(inbox_page, "PAGE", 3)
    rows = [_put(ann.user, f"P{number}")[1] for number in range(8)]
    InboxItem.objects.update(arrived_at=rows[0].arrived_at)  # the same moment: their ids decide
    inbox.mark(ann.user, [row.pk for row in rows[:3]], read=True)
    expected = [str(rows[number].pk) for number in (7, 6, 5, 4, 3, 2, 1, 0)]
    result, path = [], HERE
    while path:
        answer = ann.get(path)
        result += _shown(answer)
        older = re.search(r'rel="next" href="([^"]+)"', answer.content.decode())
        path = older[1].replace("&amp;", "&") if older else ""
    assert result == expected
    assert "There are no older" in ann.text(f"{HERE}?after=r{encode(0, 1)}")


def test_read_items_follow_a_page_that_unread_ones_fill(ann: Visitor, monkeypatch) -> None:
    monkeypatch.setattr(inbox_page, "PAGE", 2)
    rows = [_put(ann.user, f"P{number}")[1] for number in range(3)]
    inbox.mark(ann.user, [rows[0].pk], read=True)
    assert _shown(ann.get(HERE)) == [str(rows[2].pk), str(rows[1].pk)]
    assert 'rel="next"' in ann.get(HERE).content.decode()
    assert _shown(ann.get(HERE, after="r")) == [str(rows[0].pk)]
    assert 'rel="next"' not in ann.get(f"{HERE}?unread").content.decode()


@pytest.mark.parametrize(
    "wrong",
    ["x", "u_2026_1", f"x{encode(0, 1)}", f"u{encode(1)}", f"r{encode(0, 10**19)}"],
)
def test_an_invalid_position_is_not_found(ann: Visitor, wrong: str) -> None:
    assert ann.get(HERE, after=wrong).status_code == 404


def test_items_of_a_group_are_read_for_all_members(ann: Visitor) -> None:
    assert ann.user is not None
    crew = Group.objects.create(name="crew")
    _event, row = _put(crew, "Faust")
    assert _shown(ann.get(HERE)) == []
    ann.user.groups.add(crew)
    assert "group crew" in ann.text(HERE)
    ann.post(f"{HERE}/{row.pk}/read")
    assert _read(row)


def test_an_item_is_marked_as_read_and_unread(ann: Visitor) -> None:
    event, row = _put(ann.user, "Faust")
    answer = ann.post(f"{HERE}/{row.pk}/read", {"up_to": event.id, "unread": ""})
    assert answer["Location"] == f"{HERE}?unread="
    assert _read(row)
    again = ann.post(f"{HERE}/{row.pk}/unread", htmx=True)
    assert (again.status_code, again["HX-Trigger"]) == (200, "inbox")
    assert "me-unread" in again.content.decode()
    assert not _read(row)


def test_newer_items_stay_unread(ann: Visitor) -> None:
    event, row = _put(ann.user, "Faust")
    _put(ann.user, "Faust")
    ann.post(f"{HERE}/{row.pk}/read", {"up_to": event.id})
    assert not _read(row), "a newer event came on the same thing"
    page = ann.get(HERE).content.decode()
    up_to = re.search(r'name="up_to" value="(\d+)"', page)
    assert up_to
    _late, other = _put(ann.user, "Hamlet")
    ann.post(f"{HERE}/read", {"up_to": up_to[1]})
    assert _read(row)
    assert not _read(other)
    assert "1 item marked as read." in ann.text(HERE)


def test_all_are_marked_without_a_newest_event(ann: Visitor) -> None:
    rows = [_put(ann.user, title)[1] for title in ("Faust", "Hamlet")]
    ann.post(f"{HERE}/read", {"up_to": "nonsense"})
    assert all(map(_read, rows))
    assert "Mark all as read" not in ann.text(HERE)


def test_rows_of_other_users_are_not_found(ann: Visitor) -> None:
    _event, row = _put(person("bob"), "Faust")
    assert _shown(ann.get(HERE)) == []
    for what in ("read", "unread"):
        assert ann.post(f"{HERE}/{row.pk}/{what}").status_code == 404
        assert ann.post(f"{HERE}/{2**70}/{what}").status_code == 404
    ann.post(f"{HERE}/read")
    assert not _read(row)


def test_an_unreadable_event_shows_no_details(ann: Visitor) -> None:
    _event, row = _put(ann.user, "Faust")
    _put(ann.user, "Hamlet")
    readers["Faust"] = Readers.of(["bob"])
    page_text = ann.text(HERE)
    assert "You may no longer read this event." in page_text
    assert "Faust" not in ann.get(HERE).content.decode()
    assert "Hamlet" in page_text
    answer = ann.post(f"{HERE}/{row.pk}/read", htmx=True)
    assert "Faust" not in answer.content.decode()
    Event.objects.filter(pk=row.event_id).delete()
    assert "This event is no longer stored." in ann.text(HERE)


def test_items_link_to_events_without_scripts(ann: Visitor, monkeypatch) -> None:
    from tests.subscriptions.sample_domain import Premiere

    _put(ann.user, "<b>Faust</b>")
    monkeypatch.setattr(Premiere, "link", lambda event: "https://example.org/a?b&c")
    text = ann.get(HERE).content.decode()
    assert 'href="https://example.org/a?b&amp;c"' in text
    assert "<b>Faust" not in text
    monkeypatch.setattr(Premiere, "link", lambda event: "javascript:alert(1)")
    assert "javascript:" not in ann.get(HERE).content.decode()


def test_the_list_takes_few_statements(ann: Visitor, django_assert_max_num_queries) -> None:
    for number in range(30):
        _put(ann.user, f"P{number}")
    ann.get(HERE)
    with django_assert_max_num_queries(13):
        assert len(_shown(ann.get(HERE))) == 30
    assert words(ann.get(HERE)).count("P29") >= 1
