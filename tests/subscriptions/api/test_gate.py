"""Who gets in, how often, and how the API says no."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from subscriptions import tokens
from tests.subscriptions import stage
from tests.subscriptions.api.kit import Program, problem, program
from tests.subscriptions.stage import person

pytestmark = pytest.mark.django_db


def test_a_stranger_is_asked_for_a_token() -> None:
    answer = Client().get("/api/feeds")
    assert problem(answer, 401)["detail"] == "send a token: Authorization: Bearer tr_…"
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer tr_" + "x" * 43, "Bearer", "Basic YTpi", "tr_x", ""])
def test_a_token_that_opens_nothing_does_not_let_the_session_speak(header: str) -> None:
    client = Client(headers={"Authorization": header})
    client.force_login(person("ann"))
    answer = client.get("/api/feeds")
    problem(answer, 401)
    assert answer["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_the_scheme_is_not_told_apart_by_case() -> None:
    ann = program("ann")
    client = Client(headers={"Authorization": f"bearer {ann.text}"})
    assert client.get("/api/feeds").status_code == 200


def test_a_token_of_an_inactive_user_and_a_revoked_one_open_nothing() -> None:
    ann = program("ann")
    ann.user.is_active = False
    ann.user.save()
    problem(ann.get("/feeds"), 401)
    bob = program("bob")
    tokens.revoke(bob.token)
    problem(bob.get("/feeds"), 401)


def test_a_session_of_an_inactive_user_opens_nothing() -> None:
    ann = person("ann")
    client = Client()
    client.force_login(ann)
    assert client.get("/api/feeds").status_code == 200
    ann.is_active = False
    ann.save()
    problem(client.get("/api/feeds"), 401)


def test_a_token_opens_what_its_scopes_name() -> None:
    ann = program("ann", "inbox:read")
    assert ann.get("/inbox").status_code == 200
    answer = ann.get("/feeds")
    assert "lacks the scope feeds" in problem(answer, 403, "scope-missing")["detail"]
    assert answer["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="feeds"'
    problem(ann.post("/inbox/read"), 403, "scope-missing")


def test_a_browser_changes_something_only_with_the_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("ann"))
    assert client.get("/api/feeds").status_code == 200
    send = {"data": "{}", "content_type": "application/json"}
    problem(client.post("/api/feeds", **send), 403, "csrf")
    client.get("/admin/login/")
    token = "a" * 32
    client.cookies["csrftoken"] = token
    answer = client.post("/api/feeds", **send, headers={"X-CSRFToken": token})
    assert answer.status_code == 201
    problem(client.post("/api/feeds", **send, headers={"X-CSRFToken": "b" * 32}), 403, "csrf")


def test_a_program_needs_no_csrf_token() -> None:
    ann = program("ann")
    client = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {ann.text}"})
    answer = client.post("/api/feeds", data="{}", content_type="application/json")
    assert answer.status_code == 201


def test_each_token_has_a_budget_that_fills_again(settings, clock) -> None:
    settings.API_RATE, settings.API_BURST = 0.5, 3
    ann = program("ann")
    left = [ann.get("/feeds") for _ in range(3)]
    assert [one["RateLimit"] for one in left] == [
        '"api";r=2;t=2', '"api";r=1;t=4', '"api";r=0;t=6',
    ]  # fmt: skip
    assert left[0]["RateLimit-Policy"] == '"api";q=3;w=6'
    answer = ann.get("/feeds")
    problem(answer, 429, "rate-limited")
    assert answer["Retry-After"] == "2"
    assert answer["RateLimit"] == '"api";r=0;t=2'
    assert Program(ann.user).get("/feeds").status_code == 200, "another token has its own"
    clock.step(2)
    assert ann.get("/feeds").status_code == 200
    problem(ann.get("/feeds"), 429, "rate-limited")


def test_a_refusal_costs_as_much_as_an_answer(settings) -> None:
    settings.API_RATE, settings.API_BURST = 0.01, 2
    ann = program("ann", "inbox:read")
    problem(ann.get("/feeds"), 403, "scope-missing")
    answer = ann.post("/feeds", {})
    assert answer["RateLimit"].startswith('"api";r=0')
    problem(ann.get("/inbox"), 429, "rate-limited")


def test_what_is_not_there_is_a_problem_too() -> None:
    for path in ("/api/", "/api/nothing", "/api/feeds/", "/api/feeds/x", "/api/feeds/1/2"):
        problem(Client().get(path), 404)
    problem(program("ann").delete("/feeds/999999999999999999999999"), 404)


def test_what_is_not_done_here_says_what_is() -> None:
    answer = Client().put("/api/feeds")
    assert "POST" in problem(answer, 405)["detail"]
    assert {one.strip() for one in answer["Allow"].split(",")} == {"GET", "POST"}
    problem(Client().post("/api/openapi.json"), 405)


def test_head_is_get_without_a_body() -> None:
    ann = program("ann")
    answer = ann.client.head("/api/feeds")
    assert answer.status_code == 200
    assert answer.content == b""


def test_a_body_that_is_too_large_is_refused(settings) -> None:
    settings.API_MAX_BODY_BYTES = 1000
    ann = program("ann")
    assert "1000" in problem(ann.post("/feeds", {"title": "x" * 2000}), 413)["detail"]
    settings.API_MAX_BODY_BYTES = 10_000_000
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    problem(ann.post("/feeds", {"title": "x" * 2000}), 413)


def test_a_body_in_chunks_is_refused_where_the_server_drops_it() -> None:
    answer = program("ann").post("/feeds", headers={"Transfer-Encoding": "chunked"})
    problem(answer, 411)


def test_a_body_of_another_kind_is_refused() -> None:
    ann = program("ann")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/xml"):
        answer = ann.post("/feeds", b"{}", content_type=kind)
        problem(answer, 415)
        assert answer["Accept"] == "application/json"
    assert ann.post("/feeds", {}, content_type="application/json; charset=utf-8").status_code == 201


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff", b"[" * 100_000, b'{"title": NaN}', b'{"title": ' + b"9" * 5000 + b"}"],
    ids=["cut", "not utf-8", "deep", "nan", "long number"],
)
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    problem(program("ann").post("/feeds", body), 400)


def test_what_cannot_be_stored_is_refused() -> None:
    ann = program("ann")
    for answer in (
        ann.post("/feeds", {"title": "a\0b"}),
        ann.post("/feeds", {"title": "\ud800"}),
        ann.get("/feeds", cursor="a\0"),
    ):
        assert "cannot be stored" in problem(answer, 422, "invalid")["detail"]


def test_errors_say_where() -> None:
    ann = program("ann")
    found = problem(ann.post("/feeds", {"title": 5, "name": "x"}), 422, "invalid")
    assert {one["pointer"] for one in found["errors"]} == {"#/title", "#/name"}
    assert "title: Input should be a valid string" in found["detail"]
    (only,) = problem(ann.get("/feeds", limit=1000), 422, "invalid")["errors"]
    assert only == {"parameter": "limit", "detail": "Input should be less than or equal to 200"}
    for body in ([], 5, "x", None, [1]):
        problem(ann.post("/feeds", body=b"null" if body is None else body), 422, "invalid")


@pytest.mark.parametrize("cursor", ["", "x", "W10", "WyJ4Il0", "WzFlOV0", "ü", "WyIxIl0"])
def test_a_cursor_of_ones_own_making_is_refused(cursor: str) -> None:
    (only,) = problem(program("ann").get("/feeds", cursor=cursor), 422, "invalid")["errors"]
    assert only["parameter"] == "cursor"


class Breaking:
    """Holders of a role that cannot be found out."""

    def __init__(self, why: Callable[[], Any]) -> None:
        self.why = why

    @property
    def users(self) -> Any:
        return self.why()


def preview(ann: Program, why: Callable[[], Any]) -> Any:
    """Ask for what asks the roles, one of which breaks."""
    stage.holders[stage.FIRST] = Breaking(why)  # type: ignore[assignment]
    row = stage.subscribe(channel="web", user=ann.user)
    return ann.get(f"/subscriptions/{row.pk}/preview")


def test_what_nobody_foresaw_is_a_problem_without_its_reason() -> None:
    def why() -> None:
        raise RuntimeError("the secret is 42")

    ann = program("ann")
    stage.happen()
    answer = preview(ann, why)
    assert "42" not in problem(answer, 500)["detail"]
    assert isinstance(answer.exc_info[1], RuntimeError), "those who listen to errors are told"


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_says_when_to_come_again() -> None:
    def why() -> None:
        connection.cursor().execute("SELECT pg_terminate_backend(pg_backend_pid())")

    ann = program("ann")
    stage.happen()
    answer = preview(ann, why)
    connection.close()
    problem(answer, 503)
    assert answer["Retry-After"] == "5"
    assert ann.get("/feeds").status_code == 200


def test_no_cache_keeps_an_answer() -> None:
    ann = program("ann")
    for answer in (ann.get("/feeds"), Client().get("/api/feeds"), Client().get("/api/none")):
        assert answer["Cache-Control"] == "no-store"
        assert {"Authorization", "Cookie"} <= {one.strip() for one in answer["Vary"].split(",")}
