"""The page of subscriptions, the editor and the preview."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.http import HttpResponse

from tailrace.events.readers import Readers
from tailrace.jobs.models import Bucket
from tailrace.subscriptions.models import EventSubscription, Notification
from tailrace.subscriptions.notifications.preferences import options
from tailrace.subscriptions.pages.choices import subscriptions
from tests.subscriptions.sample_domain import (
    FIRST,
    SECOND,
    Gala,
    assign_role,
    person,
    publish_event,
    readers,
    subscribe,
)
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
HERE = "/me/subscriptions"
SPOT = {"type": "stage.premiere", "role": FIRST, "channel": "mail"}


@pytest.fixture(autouse=True)
def _no_defaults(db: None) -> None:
    EventSubscription.objects.all().delete()


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


def _cells(answer: HttpResponse) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return (kind, words) by (type, role, channel) of the tables in an answer."""
    result = {}
    for kind, query, text in re.findall(
        r'<a class="me-word( me-\w+)?" href="/me/subscriptions/choice\?([^"]*)">(.*?)</a>',
        answer.content.decode(),
    ):
        query = dict(pair.split("=") for pair in query.replace("%2A", "*").split("&amp;"))
        data = re.sub(r"<span.*?</span>", "", text).strip()
        result[query["type"], query["role"], query["channel"]] = (kind.strip()[3:], data)
    return result


def _family(visitor: Visitor, **query: Any) -> HttpResponse:
    return visitor.get(f"{HERE}/family", htmx=True, **{"name": "tests.play", **query})


def _save(visitor: Visitor, htmx: bool = False, **data: str) -> HttpResponse:
    return visitor.post(f"{HERE}/choice", {**SPOT, **data}, htmx=htmx)


def _own(visitor: Visitor) -> list[dict[str, str]]:
    return list(
        EventSubscription.objects.filter(user=visitor.user).values(
            "event_type", "role", "channel", "state", "pace", "subject_pattern"
        )
    )


# --- the matrix ---


def test_the_page_lists_the_families_closed(ann: Visitor) -> None:
    answer = ann.get(HERE)
    page_text = words(answer)
    for family in options.families():
        assert family in page_text
    assert "Something is played" not in page_text, "tables come when a family is opened"
    assert len(answer.content) < 40_000
    assert "stage.silence" not in words(_family(ann))


def test_a_family_shows_each_type_by_role_and_channel(ann: Visitor) -> None:
    subscribe()
    subscribe(channel="rss", state="off")
    name = options.families()
    family = next(key for key, types in name.items() if Gala in types)
    cells = _cells(_family(ann, name=family))
    assert cells["stage.premiere", FIRST, "mail"] == ("", "on")
    assert cells["stage.gala", FIRST, "mail"] == ("", "on"), "a gala is a premiere"
    assert cells["stage.premiere", FIRST, "rss"] == ("", "off")
    assert cells["stage.premiere", SECOND, "mail"] == ("", "off"), "no row speaks of it"
    assert ("stage.rehearsal", FIRST, "mail") not in cells, "it does not go out by mail"
    assert cells[family, FIRST, "mail"] == ("", "by type"), "one may choose for the whole family"


def test_own_subscriptions_override_the_groups(ann: Visitor) -> None:
    assert ann.user is not None
    crew, other = Group.objects.create(name="crew"), Group.objects.create(name="other")
    ann.user.groups.add(crew)
    subscribe()
    subscribe(group=crew, state="off")
    subscribe(group=other, channel="web")
    subscribe(user=ann.user, channel="rss", subject_pattern="devel:*")
    subscribe(user=person("bob"), channel="web")
    answer = _family(ann)
    cells = _cells(answer)
    assert cells["stage.premiere", FIRST, "mail"] == ("", "on")
    assert "crew: off" in words(answer)
    assert "other:" not in words(answer)
    assert cells["stage.premiere", FIRST, "rss"] == ("own", "on: devel:*")
    assert cells["stage.gala", FIRST, "rss"] == ("wider", "on: devel:*")
    assert cells["stage.premiere", FIRST, "web"] == ("", "off"), "bob's row is not ann's"


def test_the_filter_finds_types_by_name_and_words(ann: Visitor) -> None:
    page_text = words(ann.get(HERE, q="guests"))
    assert "A premiere with guests" in page_text, "few families are shown open"
    assert "stage.rehearsal" not in page_text
    assert "No event type matches" in words(ann.get(HERE, q="guests of honour"))
    assert "You have not set anything" in words(ann.get(HERE, only="own"))
    subscribe("stage.gala", user=ann.user)
    page_text = words(ann.get(HERE, only="own"))
    assert "stage.gala" in page_text
    assert "stage.rehearsal" not in page_text


def test_a_search_opens_its_matches_up_to_a_limit(ann: Visitor, monkeypatch) -> None:
    many = ann.get(HERE, q="a").content.decode()
    assert many.count("me-topic") <= subscriptions.MAX_OPEN
    assert re.search(r"\d+ matches", words(ann.get(HERE, q="a")))
    few = ann.get(HERE, q="stage").content.decode()
    shown = few.count('class="me-topic"')
    assert f"{shown} event types match." in few
    assert few.count("<details") == few.count(" open>"), "all families with matches are open"
    monkeypatch.setattr(subscriptions, "MAX_OPEN", 1)
    folded = words(ann.get(HERE, q="stage"))
    assert f"{shown} event types match." in folded
    assert "stage.rehearsal" not in folded


def test_notified_roles_are_marked_and_can_be_filtered(ann: Visitor) -> None:
    Notification.objects.create(event_id=publish_event().id, user=ann.user, role=SECOND)
    assert re.search(r"stage watcher you", words(_family(ann)))
    assert not re.search(r"stage owner you", words(_family(ann)))
    cells = _cells(_family(ann, only="notified"))
    assert {role for _, role, _ in cells} == {SECOND}
    assert "You were not notified in any role here" in words(
        _family(ann, name="builds.request", only="notified")
    )


def test_unreachable_channels_are_named() -> None:
    page_text = words(Visitor(person("eve", email="")).get(HERE))
    assert "mail (no mail address)" in page_text
    assert "rss (no feed)" in page_text


def test_an_unknown_family_is_not_found(ann: Visitor) -> None:
    assert _family(ann, name="tests.nothing").status_code == 404


# --- the editor ---


def test_the_editor_shows_the_current_setting(ann: Visitor) -> None:
    subscribe()
    page = ann.get(f"{HERE}/choice", **SPOT)
    assert "default (on)" in words(page)
    assert "Back to all subscriptions" in words(page)
    alone = ann.get(f"{HERE}/choice", htmx=True, **SPOT)
    assert "<html" not in alone.content.decode()
    assert 'value="default" checked' in alone.content.decode()
    subscribe("tests.play", user=ann.user, state="off")
    assert "as set for tests.play (off)" in words(ann.get(f"{HERE}/choice", **SPOT))


def test_a_subscription_is_saved_changed_and_reset(ann: Visitor) -> None:
    answer = _save(ann, choice="on", pace="daily", subject_pattern="devel:*")
    assert answer["Location"] == f"{HERE}?open=tests.play#stage-premiere"
    row = {
        "event_type": "stage.premiere", "role": FIRST, "channel": "mail",
        "state": "on", "pace": "daily", "subject_pattern": "devel:*",
    }  # fmt: skip
    assert _own(ann) == [row]
    assert "Saved. mail about" in ann.text(HERE)
    assert 'value="daily" selected' in ann.get(f"{HERE}/choice", **SPOT).content.decode()

    _save(ann, choice="off", pace="daily")
    assert _own(ann) == [{**row, "state": "off", "pace": "instant", "subject_pattern": ""}]
    _save(ann, choice="default", subject_pattern="ignored")
    assert _own(ann) == []


def test_htmx_gets_a_trigger_after_saving(ann: Visitor) -> None:
    answer = _save(ann, htmx=True, choice="on")
    assert (answer.status_code, answer["HX-Trigger"]) == (200, "chosen")
    assert "Saved." in words(answer)
    assert _cells(_family(ann))["stage.premiere", FIRST, "mail"] == ("own", "on")


@pytest.mark.parametrize(
    ("data", "page_text"),
    [
        ({}, "Choose on, off or default."),
        ({"choice": "perhaps"}, "perhaps is not one of the available choices"),
        (
            {"choice": "off", "subject_pattern": "devel:*"},
            "off applies to all subjects: leave it empty",
        ),
        ({"choice": "on", "subject_pattern": "x" * 201}, "at most 200 characters"),
        ({"choice": "on", "subject_pattern": "x\0"}, "Null characters are not allowed"),
        ({"choice": "on", "pace": "yearly"}, "yearly is not one of the available choices"),
    ],
)
@pytest.mark.parametrize("htmx", [True, False])
def test_errors_are_shown_and_nothing_is_saved(
    ann: Visitor, data: dict[str, str], page_text: str, htmx: bool
) -> None:
    before = _own(ann)
    answer = _save(ann, htmx=htmx, **data)
    assert answer.status_code == 422
    assert page_text in words(answer)
    assert _own(ann) == before


def test_only_mail_has_a_pace(ann: Visitor) -> None:
    assert "Pace" not in words(ann.get(f"{HERE}/choice", **{**SPOT, "channel": "web"}))
    answer = _save(ann, channel="web", choice="on", pace="daily")
    assert answer.status_code == 422
    assert "web has no digests: choose instant" in words(answer)
    assert _own(ann) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "stage.nothing"},
        {"type": "stage.silence"},
        {"type": ""},
        {"role": "stranger"},
        {"channel": "pigeon"},
        {"type": "stage.rehearsal"},
    ],
)
def test_unknown_options_are_not_found(ann: Visitor, wrong: dict[str, str]) -> None:
    assert ann.get(f"{HERE}/choice", **{**SPOT, **wrong}).status_code == 404
    assert _save(ann, choice="on", **wrong).status_code == 404
    assert ann.post(f"{HERE}/preview", {**SPOT, "choice": "on", **wrong}).status_code == 404
    assert _own(ann) == []


def test_a_family_and_everything_can_be_subscribed_to(ann: Visitor) -> None:
    _save(ann, type="*", choice="off")
    cells = _cells(_family(ann))
    assert cells["stage.premiere", FIRST, "mail"] == ("wider", "off")
    assert _cells(_family(ann, name="*"))["*", FIRST, "mail"] == ("own", "off")
    _save(ann, type="tests.play", choice="on")
    assert _cells(_family(ann))["stage.premiere", FIRST, "mail"] == ("wider", "on")


def test_nobody_else_is_touched(ann: Visitor) -> None:
    bob = person("bob")
    theirs = [subscribe(user=bob), subscribe(), subscribe(channel="web", user=bob)]
    _save(ann, choice="off")
    _save(ann, choice="default")
    ann.post(f"{HERE}/reset", {"sure": "on"})
    assert set(EventSubscription.objects.all()) == set(theirs)


def test_a_reset_needs_confirmation(ann: Visitor) -> None:
    subscribe(user=ann.user)
    subscribe(user=ann.user, channel="web")
    ann.post(f"{HERE}/reset")
    assert "Nothing was reset" in ann.text(HERE)
    assert len(_own(ann)) == 2
    ann.post(f"{HERE}/reset", {"sure": "on"})
    assert "2 subscriptions reset to default" in ann.text(HERE)
    assert _own(ann) == []


# --- the preview ---


def _preview(visitor: Visitor, **data: str) -> str:
    return words(visitor.post(f"{HERE}/preview", {**SPOT, "choice": "on", **data}, htmx=True))


def test_a_preview_lists_the_matching_events(ann: Visitor, clock) -> None:
    assert ann.user is not None
    assign_role(FIRST, ann.user)
    for number in range(8):
        publish_event(payload={"title": f"Faust {number}"})
    publish_event(payload={"title": "Hamlet"}, actor="ann")
    page_text = _preview(ann)
    assert "In the last 7 days this would have sent 8 notifications:" in page_text
    assert "A play was shown for the first time: Faust 0" in page_text
    assert "Faust 4" in page_text
    assert "Faust 5" not in page_text
    assert "and 3 more" in page_text
    assert "sent 1 notification:" in _preview(ann, subject_pattern="*7")
    assert "sent 0 notifications." in _preview(ann, subject_pattern="devel:*")
    assert _preview(ann, choice="off") == "It is off: it would have sent no notifications."
    off = _preview(ann, choice="off", subject_pattern="x")
    assert "No preview: off applies to all subjects" in off
    clock.step(8 * 86_400)
    assert "sent 0 notifications." in _preview(ann)
    assert _own(ann) == [], "nothing is kept"


def test_a_preview_of_the_default_uses_what_would_apply(ann: Visitor) -> None:
    assert ann.user is not None
    assign_role(FIRST, ann.user)
    publish_event(payload={"title": "Faust"})
    assert "It is off" in _preview(ann, choice="default"), "no row speaks of it"
    subscribe(subject_pattern="F*")
    mine = subscribe(user=ann.user, state="off")
    assert "sent 1 notification:" in _preview(ann, choice="default")
    mine.event_type = "tests.play"
    mine.save()
    assert "It is off" in _preview(ann, choice="default"), "the word on the family would count"


def test_a_family_has_no_default_of_its_own(ann: Visitor) -> None:
    subscribe()
    family = {**SPOT, "type": "tests.play"}
    assert "default (different for each type)" in words(ann.get(f"{HERE}/choice", **family))
    assert "has its own default" in _preview(ann, type="tests.play", choice="default")


def test_a_preview_leaves_out_unreadable_events(ann: Visitor) -> None:
    assert ann.user is not None
    assign_role(FIRST, ann.user, person("bob"))
    publish_event(payload={"title": "Faust"})
    readers["Faust"] = Readers.of(["bob"])
    assert "sent 0 notifications." in _preview(ann)


def test_too_many_previews_at_once_wait(ann: Visitor, settings) -> None:
    settings.USER_RATE = 0.1
    assert ann.user is not None
    _preview(ann)
    Bucket.objects.filter(name=f"api:user:{ann.user.pk}").update(tokens=5)
    assert "Too many previews" in _preview(ann)
