"""Blocked users and preferences by the API."""

import pytest

from tailrace.subscriptions.models import Block, Preferences
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return program("ann", "subscriptions:read", "subscriptions:write")


def test_a_user_is_blocked_and_unblocked(ann: Program) -> None:
    person("bob")
    created = ann.post("/blocks", {"username": "bob"})
    assert created.status_code == 201
    assert ann.all("/blocks") == [created.json()]
    assert created.json()["username"] == "bob"
    problem(ann.post("/blocks", {"username": "bob"}), 409, "exists")
    assert ann.delete(f"/blocks/{created.json()['id']}").status_code == 204
    assert ann.all("/blocks") == []


def test_nobody_blocks_a_stranger_or_themselves(ann: Program) -> None:
    for login, why in (("bob", "no user has this login"), ("ann", "block yourself")):
        result = problem(ann.post("/blocks", {"username": login}), 422, "invalid")
        assert why in result["detail"]
        assert result["errors"][0]["pointer"] == "#/username"
    assert not Block.objects.exists()


def test_rows_of_other_users_are_not_found(ann: Program) -> None:
    block = Block.objects.create(user=person("bob"), blocked=ann.user)
    assert ann.all("/blocks") == []
    problem(ann.delete(f"/blocks/{block.pk}"), 404)
    assert Block.objects.exists()


def test_preferences_are_the_defaults_until_they_are_changed(ann: Program) -> None:
    assert ann.get("/preferences").json() == {
        "time_zone": "UTC", "digest_at": "08:00", "digest_weekday": 0, "phone": "",
        "phone_confirmed": False,
    }  # fmt: skip
    assert not Preferences.objects.exists(), "reading keeps nothing"
    ann.patch("/preferences", {"time_zone": "Europe/Berlin", "digest_at": "06:30"})
    result = ann.patch("/preferences", {"phone": "+4930123456", "digest_weekday": 4}).json()
    assert result == ann.get("/preferences").json()
    assert result == {
        "time_zone": "Europe/Berlin", "digest_at": "06:30", "digest_weekday": 4,
        "phone": "+4930123456", "phone_confirmed": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("time_zone", "Europe/Berlinn", "not a time zone"),
        ("time_zone", "../etc/passwd", "not a time zone"),
        ("digest_at", "25:00", "pattern"),
        ("digest_at", "8 o'clock", "pattern"),
        ("digest_weekday", 7, "less than or equal to 6"),
        ("phone", "030123456", "a number such as"),
        ("phone", None, "valid string"),
        ("colour", "blue", "Extra inputs"),
    ],
)
def test_wrong_preferences_change_nothing(ann: Program, field, value, why) -> None:
    result = problem(ann.patch("/preferences", {"digest_weekday": 3, field: value}), 422, "invalid")
    (only,) = result["errors"]
    assert only["pointer"] == f"#/{field}"
    assert why in only["detail"]
    assert ann.get("/preferences").json()["digest_weekday"] == 0
