"""Feeds through the API: made, listed, revoked."""

import pytest

from subscriptions.api import feeds
from subscriptions.models import Feed
from tests.subscriptions.api.kit import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return program("ann", "feeds")


def test_a_feed_is_made_and_its_address_shown_once(ann: Program) -> None:
    made = ann.post("/feeds", {"title": "my news"})
    assert made.status_code == 201
    address = made.json().pop("address")
    path = "/feeds/" + address.split("/feeds/")[1]
    assert ann.client.get(path).status_code == 200
    (listed,) = ann.all("/feeds")
    assert listed["title"] == "my news"
    assert address.split("/")[-1].removesuffix(".atom") not in str(listed)

    assert ann.delete(f"/feeds/{listed['id']}").status_code == 204
    assert ann.client.get(path).status_code == 404
    (revoked,) = ann.all("/feeds")
    assert revoked["revoked_at"] is not None
    assert ann.delete(f"/feeds/{listed['id']}").status_code == 204, "done again, nothing changes"
    assert ann.all("/feeds") == [revoked]


def test_those_of_others_are_out_of_reach(ann: Program) -> None:
    made = program("bob").post("/feeds", {}).json()
    assert made["title"] == "Tailrace"
    problem(ann.delete(f"/feeds/{made['id']}"), 404)
    assert ann.all("/feeds") == []
    assert Feed.objects.get().revoked_at is None


def test_a_user_has_a_bounded_number_of_them(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(feeds, "LIVE", 2)
    first, _ = (ann.post("/feeds", {}).json() for _ in range(2))
    problem(ann.post("/feeds", {}), 409, "too-many")
    ann.delete(f"/feeds/{first['id']}")
    assert ann.post("/feeds", {}).status_code == 201


@pytest.mark.parametrize("title", ["", "x" * 101, 5, None])
def test_a_title_that_is_none_is_refused(ann: Program, title: object) -> None:
    problem(ann.post("/feeds", {"title": title}), 422, "invalid")
