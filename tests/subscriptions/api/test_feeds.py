"""Feeds by the API: create, list, revoke."""

import pytest

from tailrace.subscriptions.channels.rss import feeds
from tailrace.subscriptions.models import Feed
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return program("ann", "feeds")


def test_a_feed_is_created_and_its_address_shown_once(ann: Program) -> None:
    created = ann.post("/feeds", {"title": "my news"})
    assert created.status_code == 201
    address = created.json().pop("address")
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


def test_rows_of_other_users_are_not_found(ann: Program) -> None:
    created = program("bob").post("/feeds", {}).json()
    assert created["title"] == "Tailrace"
    problem(ann.delete(f"/feeds/{created['id']}"), 404)
    assert ann.all("/feeds") == []
    assert Feed.objects.get().revoked_at is None


def test_the_number_per_user_is_limited(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(feeds, "MAX_FEEDS", 2)
    first, _ = (ann.post("/feeds", {}).json() for _ in range(2))
    problem(ann.post("/feeds", {}), 409, "too-many")
    ann.delete(f"/feeds/{first['id']}")
    assert ann.post("/feeds", {}).status_code == 201


@pytest.mark.parametrize("title", ["", "x" * 101, 5, None])
def test_an_invalid_title_is_refused(ann: Program, title: object) -> None:
    problem(ann.post("/feeds", {"title": title}), 422, "invalid")
