"""An Idempotency-Key on any POST: what is sent again is carried out once."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import F
from django.http import HttpResponse

from tailrace.net.encryption import decrypt
from tailrace.subscriptions.models import Block, Endpoint, EventSubscription, Feed
from tailrace.web.api import idempotency
from tailrace.web.api.site import api
from tailrace.web.invariants import AnswersAreKeptInTime
from tailrace.web.models import AnsweredRequest
from tests.subscriptions.sample_domain import FIRST, person
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db
ROW = {"event_type": "stage.premiere", "role": FIRST, "channel": "web"}
KEY = {"headers": {"Idempotency-Key": "first"}}


@pytest.fixture
def ann() -> Program:
    return program("ann")


def test_a_repeated_request_gets_the_first_answer(ann: Program) -> None:
    first, again = (ann.post("/subscriptions", ROW, **KEY) for _ in range(2))
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert first["Location"] == again["Location"]
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert "no-store" in again["Cache-Control"]
    assert EventSubscription.objects.filter(user=ann.user).count() == 1
    row = AnsweredRequest.objects.get()
    assert "stage.premiere" not in str(AnsweredRequest.objects.values().get())
    assert "stage.premiere" in decrypt(row.answer)


def test_another_request_with_the_key_is_refused(ann: Program) -> None:
    person("bob")
    ann.post("/subscriptions", ROW, **KEY)
    for path, body in (
        ("/subscriptions", ROW | {"channel": "mail"}),
        ("/blocks", {"username": "bob"}),
    ):
        answer = ann.post(path, body, **KEY)
        assert problem(answer, 422, "key-reused")["errors"][0]["header"] == "Idempotency-Key"
    assert not Block.objects.exists()
    assert program("carol").post("/subscriptions", ROW, **KEY).status_code == 201, "each user's own"


def test_an_error_is_not_kept(ann: Program) -> None:
    assert ann.post("/blocks", {"username": "bob"}, **KEY).status_code == 422
    person("bob")
    assert ann.post("/blocks", {"username": "bob"}, **KEY).status_code == 201


def test_a_request_that_is_being_worked_on_is_not_carried_out_again(ann: Program) -> None:
    ann.post("/subscriptions", ROW, **KEY)
    AnsweredRequest.objects.update(status=None, answer="")
    answer = ann.post("/subscriptions", ROW, **KEY)
    assert (answer.status_code, answer["Retry-After"]) == (409, "2")
    assert problem(answer, 409, "key-in-use")


def test_secrets_are_never_kept(ann: Program) -> None:
    made = ann.post("/endpoints", {"url": "https://example.org/"}, **KEY)
    feed = ann.post("/feeds", {"title": "x"}, headers={"Idempotency-Key": "feed"})
    rotate = f"/endpoints/{made.json()['id']}/rotate"
    rotated = ann.post(rotate, None, headers={"Idempotency-Key": "rotate"})
    assert (made.status_code, feed.status_code, rotated.status_code) == (201, 201, 200)
    assert set(AnsweredRequest.objects.values_list("answer", flat=True)) == {""}
    again = ann.post("/endpoints", {"url": "https://example.org/"}, **KEY)
    assert problem(again, 409, "key-done")
    assert again["Location"] == made["Location"]
    assert ann.post(rotate, None, headers={"Idempotency-Key": "rotate"}).status_code == 409
    assert (Endpoint.objects.count(), Feed.objects.count()) == (1, 1)


@pytest.mark.parametrize("key", ["", "x" * 256, "two words", "ümlaut"])
def test_a_key_that_is_none_is_refused(ann: Program, key: str) -> None:
    """Also by operations that store their keys themselves."""
    bodies = {
        "/subscriptions": ROW,
        "/jobs": {"handler": "stage.review"},
        "/photos": {},
        "/protection/reports": {},
        "/records/depositions": {},
    }
    for path, body in bodies.items():
        answer = ann.post(path, body, headers={"Idempotency-Key": key})
        [error] = problem(answer, 422, "invalid")["errors"]
        assert error == {
            "header": "Idempotency-Key",
            "detail": "send 1 to 255 printable ASCII characters without spaces",
        }, path


def test_keys_are_bounded_and_end_after_a_day(ann: Program, monkeypatch) -> None:
    for number in range(3):
        AnsweredRequest.objects.create(user=ann.user, key=str(number), digest="")
    monkeypatch.setattr(idempotency, "MAX_KEYS", 3)
    assert problem(ann.post("/subscriptions", ROW, **KEY), 409, "too-many")
    AnsweredRequest.objects.update(created_at=F("created_at") - timedelta(hours=25))
    assert len(AnswersAreKeptInTime().find()) == 3
    assert AnswersAreKeptInTime().repair(AnswersAreKeptInTime().find()) == 3
    assert ann.post("/subscriptions", ROW, **KEY).status_code == 201
    AnsweredRequest.objects.update(created_at=F("created_at") - timedelta(hours=25))
    assert ann.post("/subscriptions", ROW | {"channel": "mail"}, **KEY).status_code == 201


def test_every_post_takes_a_key() -> None:
    posts = [ops["post"] for ops in api.get_openapi_schema()["paths"].values() if "post" in ops]
    assert len(posts) > 40
    for post in posts:
        names = [each.get("name") or each["$ref"] for each in post.get("parameters", [])]
        has_key = {"Idempotency-Key", "#/components/parameters/IdempotencyKey"} & set(names)
        assert has_key, post["operationId"]


def test_a_form_is_the_same_whatever_its_boundary(ann: Program, import_folder) -> None:
    def send(content: bytes) -> HttpResponse:
        file = SimpleUploadedFile("a.geojson", content)
        return ann.client.post("/api/imports", {"file": file}, **KEY)

    points = b'{"type": "FeatureCollection", "features": []}'
    first, again, other = send(points), send(points), send(points + b" ")
    assert first.status_code == 202, first.content
    assert again["Idempotency-Replayed"] == "true"
    assert other.status_code == 422
