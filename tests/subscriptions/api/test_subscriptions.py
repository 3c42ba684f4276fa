"""Subscriptions by the API: create, change, delete, preview, and the options."""

import pytest

from tailrace.events.catalog.topics import topic_names
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience import preview
from tests.kit import at_once
from tests.subscriptions.sample_domain import (
    FIRST,
    SECOND,
    Gala,
    Rehearsal,
    assign_role,
    person,
    publish_event,
    subscribe,
)
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db
ROW = {"event_type": "stage.premiere", "role": FIRST, "channel": "mail"}


@pytest.fixture(autouse=True)
def _no_defaults(db: None) -> None:
    EventSubscription.objects.all().delete()


@pytest.fixture
def ann() -> Program:
    return program("ann", "subscriptions:read", "subscriptions:write")


def test_a_subscription_is_created_changed_and_deleted(ann: Program) -> None:
    created = ann.post("/subscriptions", {**ROW, "subject_pattern": "devel:*", "pace": "daily"})
    assert created.status_code == 201
    row = created.json()
    assert created["Location"] == f"/api/subscriptions/{row['id']}"
    assert row == {
        **ROW, "id": row["id"], "state": "on", "pace": "daily", "subject_pattern": "devel:*",
    }  # fmt: skip
    assert EventSubscription.objects.get().user == ann.user
    assert ann.get(f"/subscriptions/{row['id']}").json() == row

    changed = ann.patch(f"/subscriptions/{row['id']}", {"state": "off", "subject_pattern": ""})
    assert changed.json() == {**row, "state": "off", "subject_pattern": ""}
    assert ann.get(f"/subscriptions/{row['id']}").json() == changed.json()

    assert ann.delete(f"/subscriptions/{row['id']}").status_code == 204
    problem(ann.get(f"/subscriptions/{row['id']}"), 404)
    problem(ann.delete(f"/subscriptions/{row['id']}"), 404)


def test_rows_of_others_and_defaults_are_not_found(ann: Program) -> None:
    for row in (subscribe(user=person("bob")), subscribe()):
        for answer in (
            ann.get(f"/subscriptions/{row.pk}"),
            ann.patch(f"/subscriptions/{row.pk}", {"state": "off"}),
            ann.delete(f"/subscriptions/{row.pk}"),
            ann.get(f"/subscriptions/{row.pk}/preview"),
        ):
            problem(answer, 404)
    assert ann.all("/subscriptions") == []
    assert set(EventSubscription.objects.values_list("state", flat=True)) == {"on"}


def test_pages_list_each_item_once(ann: Program) -> None:
    created = [
        subscribe(role=role, channel=channel, user=ann.user).pk
        for role in (FIRST, SECOND)
        for channel in ("mail", "rss", "web")
    ]
    assert [row["id"] for row in ann.all("/subscriptions", limit=4)] == created[::-1]
    assert [row["id"] for row in ann.all("/subscriptions", limit=3)] == created[::-1]
    assert ann.get("/subscriptions", limit=6).json()["next"] is None


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("event_type", "stage.premier", "did you mean 'stage.premiere'?"),
        ("role", "stage_ownr", "did you mean 'stage_owner'?"),
        ("channel", "mial", "no channel has this name; did you mean 'mail'?"),
        ("state", "maybe", "'on' or 'off'"),
        ("pace", "yearly", "'weekly'"),
        ("subject_pattern", "x" * 201, "200"),
        ("user", 1, "Extra inputs are not permitted"),
    ],
)
def test_errors_of_a_subscription_are_reported(ann: Program, field, value, why) -> None:
    result = problem(ann.post("/subscriptions", {**ROW, field: value}), 422, "invalid")
    (only,) = result["errors"]
    assert only["pointer"] == f"#/{field}"
    assert why in only["detail"]
    assert not EventSubscription.objects.exists()


def test_all_errors_are_reported_at_once(ann: Program) -> None:
    body = {"event_type": "x", "role": "y", "channel": "rss", "pace": "daily", "state": "off",
            "subject_pattern": "z"}  # fmt: skip
    result = problem(ann.post("/subscriptions", body), 422, "invalid")
    assert {error["pointer"] for error in result["errors"]} == {
        "#/event_type", "#/role", "#/pace", "#/subject_pattern",
    }  # fmt: skip


def test_a_change_is_checked_like_a_new_row(ann: Program) -> None:
    row = subscribe(user=ann.user, subject_pattern="a*")
    answer = ann.patch(f"/subscriptions/{row.pk}", {"state": "off"})
    assert "leave it empty" in problem(answer, 422, "invalid")["detail"]
    row.refresh_from_db()
    assert row.state == "on"
    other = subscribe(user=ann.user, channel="rss")
    answer = ann.patch(f"/subscriptions/{other.pk}", {"channel": "mail"})
    assert (
        "you already have a subscription for stage.premiere"
        in problem(answer, 409, "exists")["detail"]
    )


def test_there_is_one_row_for_each_type_role_and_channel(ann: Program) -> None:
    assert ann.post("/subscriptions", ROW).status_code == 201
    problem(ann.post("/subscriptions", ROW), 409, "exists")
    assert program("bob").post("/subscriptions", ROW).status_code == 201, "others have their own"


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_create_one_subscription() -> None:
    EventSubscription.objects.all().delete()
    ann = program("ann")
    result = at_once(4, lambda _: Program.post(ann, "/subscriptions", ROW).status_code)
    assert sorted(result) == [201, 409, 409, 409]


def test_a_family_and_everything_can_be_subscribed_to(ann: Program) -> None:
    family = topic_names(Gala)[-2]
    for name in (family, "*"):
        assert ann.post("/subscriptions", {**ROW, "event_type": name}).status_code == 201


def test_the_options_show_what_applies(ann: Program) -> None:
    subscribe("stage.premiere", state="off")
    subscribe("*", channel="rss")
    subscribe("stage.premiere", user=ann.user, pace="weekly")
    subscribe("stage.gala", user=person("bob"))
    types = {row["event_type"]: row for row in ann.get("/subscriptions/matrix").json()["types"]}
    assert "stage.silence" not in types, "nobody can be notified of it"
    gala = types["stage.gala"]
    assert gala["families"] == list(topic_names(Gala)[1:])
    assert gala["description"] == "A premiere with guests."
    assert [role["role"] for role in gala["roles"]] == [FIRST, SECOND]
    cells = {cell["channel"]: cell for cell in gala["roles"][0]["channels"]}
    assert cells["mail"]["default"]["state"] == "off"
    assert cells["mail"]["own"]["event_type"] == "stage.premiere"
    assert cells["mail"]["own"]["pace"] == "weekly"
    assert cells["rss"]["own"] is None
    assert cells["rss"]["default"]["event_type"] == "*"
    assert "mail" not in {
        cell["channel"] for cell in types[Rehearsal.name]["roles"][0]["channels"]
    }, "what a type does not offer is no choice"


def test_the_options_of_one_type(ann: Program) -> None:
    (only,) = ann.get("/subscriptions/matrix", event_type="stage.gala").json()["types"]
    assert only["event_type"] == "stage.gala"
    (fault,) = problem(ann.get("/subscriptions/matrix", event_type="stage.galla"), 422, "invalid")[
        "errors"
    ]
    assert "did you mean 'stage.gala'?" in fault["detail"]
    assert fault["parameter"] == "event_type"


def test_a_preview_counts_the_matching_events(ann: Program, clock) -> None:
    assign_role(FIRST, ann.user)
    publish_event(payload={"title": "too old"})
    clock.step(5 * 86400)
    titles = [f"night {number}" for number in range(25)]
    for title in titles:
        publish_event(payload={"title": title})
    publish_event(payload={"title": "by herself"}, actor="ann")
    publish_event(Rehearsal, payload={"title": "of another type"})
    row = subscribe(user=ann.user)
    result = ann.get(f"/subscriptions/{row.pk}/preview", days=3).json()
    assert result["count"] == 25
    assert result["whole"] is True
    assert [event["subject"] for event in result["events"]] == titles[:20]
    assert result["events"][0]["title"]
    assert ann.get(f"/subscriptions/{row.pk}/preview").json()["count"] == 26, "7 days"
    for days in (0, 31, "x"):
        problem(ann.get(f"/subscriptions/{row.pk}/preview", days=days), 422, "invalid")


def test_a_preview_of_an_unsaved_subscription(ann: Program) -> None:
    assign_role(FIRST, ann.user)
    for title in ("devel:a", "devel:b", "other"):
        publish_event(payload={"title": title})
    body = {**ROW, "subject_pattern": "devel:*"}
    assert ann.post("/subscriptions/preview", body).json()["count"] == 2
    assert not EventSubscription.objects.exists()
    own = subscribe(user=ann.user, state="off")
    assert ann.post("/subscriptions/preview?days=1", body).json()["count"] == 2
    own.refresh_from_db()
    assert (own.state, own.subject_pattern) == ("off", ""), "her row is what it was"
    wrong = ann.post("/subscriptions/preview", {**body, "role": "x"})
    problem(wrong, 422, "invalid")


def test_a_preview_examines_a_limited_number_of_events(ann: Program, clock, monkeypatch) -> None:
    monkeypatch.setattr(preview, "MAX_EVENTS", 10)
    monkeypatch.setattr(preview, "PAGE_SIZE", 4)
    assign_role(FIRST, ann.user)
    row = subscribe(user=ann.user)
    for number in range(12):
        clock.step(60)
        publish_event(payload={"title": str(number)})
    result = ann.get(f"/subscriptions/{row.pk}/preview").json()
    assert (result["count"], result["whole"]) == (10, False)
    assert [event["subject"] for event in result["events"]] == [str(n) for n in range(2, 12)]
    monkeypatch.setattr(preview, "MAX_SECONDS", -1)
    short = ann.get(f"/subscriptions/{row.pk}/preview").json()
    assert (short["count"], short["whole"]) == (4, False), "the newest are looked at first"
    assert result["since"] < short["since"] < short["until"]


def test_a_preview_is_empty_without_the_role(ann: Program) -> None:
    assign_role(FIRST, person("bob"))
    publish_event()
    row = subscribe(user=ann.user)
    assert ann.get(f"/subscriptions/{row.pk}/preview").json()["count"] == 0
