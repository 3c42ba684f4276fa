"""One's own rows through the API: made, changed, deleted, previewed; and the matrix."""

import pytest

from subscriptions import preview
from subscriptions.lineage import lineage
from subscriptions.models import EventSubscription
from tests.kit import at_once
from tests.subscriptions.api.kit import Program, problem, program
from tests.subscriptions.stage import (
    FIRST,
    SECOND,
    Gala,
    Rehearsal,
    happen,
    hold,
    person,
    subscribe,
)

pytestmark = pytest.mark.django_db
ROW = {"event_type": "stage.premiere", "role": FIRST, "channel": "mail"}


@pytest.fixture(autouse=True)
def _no_defaults(db: None) -> None:
    EventSubscription.objects.all().delete()


@pytest.fixture
def ann() -> Program:
    return program("ann", "subscriptions:read", "subscriptions:write")


def test_a_row_is_made_read_changed_and_deleted(ann: Program) -> None:
    made = ann.post("/subscriptions", {**ROW, "subject_pattern": "devel:*", "pace": "daily"})
    assert made.status_code == 201
    row = made.json()
    assert made["Location"] == f"/api/subscriptions/{row['id']}"
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


def test_those_of_others_and_the_defaults_are_out_of_reach(ann: Program) -> None:
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


def test_pages_show_each_once(ann: Program) -> None:
    made = [
        subscribe(role=role, channel=channel, user=ann.user).pk
        for role in (FIRST, SECOND)
        for channel in ("mail", "rss", "web")
    ]
    assert [row["id"] for row in ann.all("/subscriptions", limit=4)] == made[::-1]
    assert [row["id"] for row in ann.all("/subscriptions", limit=3)] == made[::-1]
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
def test_what_is_wrong_with_a_row_is_said(ann: Program, field, value, why) -> None:
    found = problem(ann.post("/subscriptions", {**ROW, field: value}), 422, "invalid")
    (only,) = found["errors"]
    assert only["pointer"] == f"#/{field}"
    assert why in only["detail"]
    assert not EventSubscription.objects.exists()


def test_all_that_is_wrong_is_said_at_once(ann: Program) -> None:
    body = {"event_type": "x", "role": "y", "channel": "rss", "pace": "daily", "state": "off",
            "subject_pattern": "z"}  # fmt: skip
    found = problem(ann.post("/subscriptions", body), 422, "invalid")
    assert {one["pointer"] for one in found["errors"]} == {
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
    assert "you have a row for stage.premiere" in problem(answer, 409, "exists")["detail"]


def test_there_is_one_row_for_each_type_role_and_channel(ann: Program) -> None:
    assert ann.post("/subscriptions", ROW).status_code == 201
    problem(ann.post("/subscriptions", ROW), 409, "exists")
    assert program("bob").post("/subscriptions", ROW).status_code == 201, "others have their own"


@pytest.mark.django_db(transaction=True)
def test_of_several_at_once_one_makes_the_row() -> None:
    EventSubscription.objects.all().delete()
    ann = program("ann")
    found = at_once(4, lambda _: Program.post(ann, "/subscriptions", ROW).status_code)
    assert sorted(found) == [201, 409, 409, 409]


def test_a_family_and_everything_can_be_subscribed_to(ann: Program) -> None:
    family = lineage(Gala)[-2]
    for name in (family, "*"):
        assert ann.post("/subscriptions", {**ROW, "event_type": name}).status_code == 201


def test_the_matrix_shows_what_counts(ann: Program) -> None:
    subscribe("stage.premiere", state="off")
    subscribe("*", channel="rss")
    subscribe("stage.premiere", user=ann.user, pace="weekly")
    subscribe("stage.gala", user=person("bob"))
    types = {row["event_type"]: row for row in ann.get("/subscriptions/matrix").json()["types"]}
    assert "stage.silence" not in types, "nobody can hear of it"
    gala = types["stage.gala"]
    assert gala["families"] == list(lineage(Gala)[1:])
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


def test_the_matrix_of_one_type(ann: Program) -> None:
    (only,) = ann.get("/subscriptions/matrix", event_type="stage.gala").json()["types"]
    assert only["event_type"] == "stage.gala"
    (fault,) = problem(ann.get("/subscriptions/matrix", event_type="stage.galla"), 422, "invalid")[
        "errors"
    ]
    assert "did you mean 'stage.gala'?" in fault["detail"]
    assert fault["parameter"] == "event_type"


def test_a_preview_counts_what_a_row_has_brought(ann: Program, clock) -> None:
    hold(FIRST, ann.user)
    happen(payload={"title": "too old"})
    clock.step(5 * 86400)
    titles = [f"night {number}" for number in range(25)]
    for title in titles:
        happen(payload={"title": title})
    happen(payload={"title": "by herself"}, actor="ann")
    happen(Rehearsal, payload={"title": "of another type"})
    row = subscribe(user=ann.user)
    found = ann.get(f"/subscriptions/{row.pk}/preview", days=3).json()
    assert found["count"] == 25
    assert found["whole"] is True
    assert [event["subject"] for event in found["events"]] == titles[:20]
    assert found["events"][0]["title"]
    assert ann.get(f"/subscriptions/{row.pk}/preview").json()["count"] == 26, "7 days"
    for days in (0, 31, "x"):
        problem(ann.get(f"/subscriptions/{row.pk}/preview", days=days), 422, "invalid")


def test_a_preview_of_a_row_that_is_not_kept(ann: Program) -> None:
    hold(FIRST, ann.user)
    for title in ("devel:a", "devel:b", "other"):
        happen(payload={"title": title})
    body = {**ROW, "subject_pattern": "devel:*"}
    assert ann.post("/subscriptions/preview", body).json()["count"] == 2
    assert not EventSubscription.objects.exists()
    own = subscribe(user=ann.user, state="off")
    assert ann.post("/subscriptions/preview?days=1", body).json()["count"] == 2
    own.refresh_from_db()
    assert (own.state, own.subject_pattern) == ("off", ""), "her row is what it was"
    wrong = ann.post("/subscriptions/preview", {**body, "role": "x"})
    problem(wrong, 422, "invalid")


def test_a_preview_looks_at_a_bounded_number_of_events(ann: Program, clock, monkeypatch) -> None:
    monkeypatch.setattr(preview, "EXAMINED", 10)
    monkeypatch.setattr(preview, "SLICE", 4)
    hold(FIRST, ann.user)
    row = subscribe(user=ann.user)
    for number in range(12):
        clock.step(60)
        happen(payload={"title": str(number)})
    found = ann.get(f"/subscriptions/{row.pk}/preview").json()
    assert (found["count"], found["whole"]) == (10, False)
    assert [event["subject"] for event in found["events"]] == [str(n) for n in range(2, 12)]
    monkeypatch.setattr(preview, "SECONDS", -1)
    short = ann.get(f"/subscriptions/{row.pk}/preview").json()
    assert (short["count"], short["whole"]) == (4, False), "the newest are looked at first"
    assert found["since"] < short["since"] < short["until"]


def test_a_preview_shows_nothing_to_whom_the_roles_do_not_name(ann: Program) -> None:
    hold(FIRST, person("bob"))
    happen()
    row = subscribe(user=ann.user)
    assert ann.get(f"/subscriptions/{row.pk}/preview").json()["count"] == 0
