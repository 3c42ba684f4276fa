"""Authentication, rate limit and error responses of the API."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tailrace.web.accounts import tokens
from tests.subscriptions import sample_domain
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem, program
from tests.web.visitor import confirm_session

pytestmark = pytest.mark.django_db


def test_an_anonymous_request_is_refused() -> None:
    answer = Client().get("/api/feeds")
    assert problem(answer, 401)["detail"] == "send a token: Authorization: Bearer tr_…"
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer tr_" + "x" * 43, "Bearer", "Basic YTpi", "tr_x", ""])
def test_an_invalid_token_beats_a_valid_session(header: str) -> None:
    client = Client(headers={"Authorization": header})
    client.force_login(person("ann"))
    answer = client.get("/api/feeds")
    problem(answer, 401)
    assert answer["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_the_auth_scheme_ignores_case() -> None:
    ann = program("ann")
    client = Client(headers={"Authorization": f"bearer {ann.text}"})
    assert client.get("/api/feeds").status_code == 200


def test_revoked_tokens_and_inactive_users_are_refused() -> None:
    ann = program("ann")
    ann.user.is_active = False
    ann.user.save()
    problem(ann.get("/feeds"), 401)
    bob = program("bob")
    tokens.revoke(bob.token)
    problem(bob.get("/feeds"), 401)


def test_a_session_of_an_inactive_user_is_refused() -> None:
    ann = person("ann")
    client = Client()
    client.force_login(ann)
    assert client.get("/api/feeds").status_code == 200
    ann.is_active = False
    ann.save()
    problem(client.get("/api/feeds"), 401)


def test_a_token_allows_only_its_scopes() -> None:
    ann = program("ann", "inbox:read")
    assert ann.get("/inbox").status_code == 200
    answer = ann.get("/feeds")
    assert "does not have the scope feeds" in problem(answer, 403, "scope-missing")["detail"]
    assert answer["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="feeds"'
    problem(ann.post("/inbox/read"), 403, "scope-missing")


def test_a_browser_needs_the_csrf_token_for_changes() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("ann"))
    confirm_session(client)
    assert client.get("/api/feeds").status_code == 200
    send = {"data": "{}", "content_type": "application/json"}
    problem(client.post("/api/feeds", **send), 403, "csrf")
    client.get("/accounts/login/")
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


def limit(answer: Any) -> tuple[int, int]:
    """What `RateLimit` says: the requests that are left, and the seconds, in hundreds."""
    match = re.fullmatch(r'"api";r=(\d+);t=(\d+)', answer["RateLimit"])
    assert match, answer["RateLimit"]
    return int(match[1]), round(int(match[2]), -2)


def test_each_token_has_a_rate_limit(settings, clock) -> None:
    settings.API_RATE, settings.API_BURST = 0.001, 3
    ann = program("ann")
    left = [ann.get("/feeds") for _ in range(3)]
    assert [limit(answer) for answer in left] == [(2, 1000), (1, 2000), (0, 3000)]
    assert left[0]["RateLimit-Policy"] == '"api";q=3;w=3000'
    answer = ann.get("/feeds")
    problem(answer, 429, "rate-limited")
    assert limit(answer) == (0, 1000)
    assert answer["Retry-After"] == answer["RateLimit"].rpartition("=")[2]
    assert Program(ann.user).get("/feeds").status_code == 200, "another token has its own"
    clock.step(1000)
    assert ann.get("/feeds").status_code == 200
    problem(ann.get("/feeds"), 429, "rate-limited")


def test_a_refused_request_counts_for_the_rate_limit(settings) -> None:
    settings.API_RATE, settings.API_BURST = 0.01, 2
    ann = program("ann", "inbox:read")
    problem(ann.get("/feeds"), 403, "scope-missing")
    answer = ann.post("/feeds", {})
    assert answer["RateLimit"].startswith('"api";r=0')
    problem(ann.get("/inbox"), 429, "rate-limited")


def test_an_unknown_address_is_a_problem() -> None:
    for path in (
        "/api/",
        "/api/nothing",
        "/api/feeds/",
        "/api/feeds/x",
        "/api/feeds/1/2",
        "/api/a%0Ab",
    ):
        problem(Client().get(path), 404)
    problem(program("ann").delete("/feeds/999999999999999999999999"), 404)


def test_a_wrong_method_names_the_allowed_ones() -> None:
    answer = Client().put("/api/feeds")
    assert "POST" in problem(answer, 405)["detail"]
    assert {method.strip() for method in answer["Allow"].split(",")} == {"GET", "POST"}
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


def test_a_chunked_body_is_refused() -> None:
    answer = program("ann").post("/feeds", headers={"Transfer-Encoding": "chunked"})
    problem(answer, 411)


def test_a_wrong_content_type_is_refused() -> None:
    ann = program("ann")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/xml"):
        answer = ann.post("/feeds", b"{}", content_type=kind)
        problem(answer, 415)
        assert answer["Accept"] == "application/json"
    assert ann.post("/feeds", {}, content_type="application/json; charset=utf-8").status_code == 201


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff", b"[" * 10_000, b'{"title": NaN}', b'{"title": ' + b"9" * 5000 + b"}"],
    ids=["cut", "not utf-8", "deep", "nan", "long number"],
)
def test_invalid_json_is_refused(body: bytes) -> None:
    problem(program("ann").post("/feeds", body), 400)


def test_text_that_cannot_be_stored_is_refused() -> None:
    ann = program("ann")
    for answer in (
        ann.post("/feeds", {"title": "a\0b"}),
        ann.post("/feeds", {"title": "\ud800"}),
    ):
        assert "cannot be stored" in problem(answer, 422, "invalid")["detail"]
    assert "NUL" in problem(ann.get("/feeds", cursor="a\0"), 400)["detail"]


def test_errors_name_their_place() -> None:
    ann = program("ann")
    result = problem(ann.post("/feeds", {"title": 5, "name": "x"}), 422, "invalid")
    assert {error["pointer"] for error in result["errors"]} == {"#/title", "#/name"}
    assert "title: Input should be a valid string" in result["detail"]
    (only,) = problem(ann.get("/feeds", limit=1000), 422, "invalid")["errors"]
    assert only == {"parameter": "limit", "detail": "Input should be less than or equal to 200"}
    for body in ([], 5, "x", None, [1]):
        problem(ann.post("/feeds", body=b"null" if body is None else body), 422, "invalid")


@pytest.mark.parametrize("cursor", ["", "x", "W10", "WyJ4Il0", "WzFlOV0", "ü", "WyIxIl0"])
def test_an_invalid_cursor_is_refused(cursor: str) -> None:
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
    sample_domain.holders[sample_domain.FIRST] = Breaking(why)  # type: ignore[assignment]
    row = sample_domain.subscribe(channel="web", user=ann.user)
    return ann.get(f"/subscriptions/{row.pk}/preview")


def test_an_unexpected_error_hides_its_reason() -> None:
    def why() -> None:
        raise RuntimeError("the secret is a raven")

    ann = program("ann")
    sample_domain.publish_event()
    answer = preview(ann, why)
    assert "raven" not in problem(answer, 500)["detail"]
    assert isinstance(answer.exc_info[1], RuntimeError), "error reporters get it"


@pytest.mark.django_db(transaction=True)
def test_a_lost_database_gives_503_with_retry_after() -> None:
    def why() -> None:
        connection.cursor().execute("SELECT pg_terminate_backend(pg_backend_pid())")

    ann = program("ann")
    sample_domain.publish_event()
    answer = preview(ann, why)
    connection.close()
    problem(answer, 503)
    assert answer["Retry-After"] == "5"
    assert ann.get("/feeds").status_code == 200


def test_responses_are_not_cached() -> None:
    ann = program("ann")
    for answer in (ann.get("/feeds"), Client().get("/api/feeds"), Client().get("/api/none")):
        assert answer["Cache-Control"] == "no-store"
        assert {"Authorization", "Cookie"} <= {
            header.strip() for header in answer["Vary"].split(",")
        }


def test_a_request_that_counts_as_several_says_what_is_left(settings) -> None:
    """The header had the budget before the further costs."""
    settings.API_RATE, settings.API_BURST = 0.001, 100
    ann = program("ann", may=("tailrace_events.add_event",))
    batch = [
        {"specversion": "1.0", "id": str(id), "source": "/ci", "type": "stage.gala", "data": {}}
        for id in range(41)
    ]
    answer = ann.post("/events", batch, content_type="application/cloudevents-batch+json")
    assert (answer.status_code, limit(answer)[0]) == (201, 97)
