"""A client for the tests of the API: a program with a token."""

import json
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client

from tailrace.web.accounts import tokens
from tailrace.web.models import ApiToken
from tests.subscriptions.sample_domain import person


class Program:
    """Calls the API with a token that has these scopes, or all."""

    def __init__(self, user: User, *scopes: str) -> None:
        self.user = user
        self.ids: dict[str, int] = {}
        self.token, self.text = make_token(user, "test", scopes or tokens.scopes())
        self.client = Client(
            raise_request_exception=False, headers={"Authorization": f"Bearer {self.text}"}
        )

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self.client.get(f"/api{path}", query)

    def post(self, path: str, body: Any = None, **extra: Any) -> HttpResponse:
        return self._send("post", path, body, extra)

    def patch(self, path: str, body: Any) -> HttpResponse:
        return self._send("patch", path, body, {})

    def delete(self, path: str) -> HttpResponse:
        return self.client.delete(f"/api{path}")

    def _send(self, method: str, path: str, body: Any, extra: dict[str, Any]) -> HttpResponse:
        extra = {"content_type": "application/json", **extra}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        answer: HttpResponse = getattr(self.client, method)(f"/api{path}", data=data, **extra)
        return answer

    def all(self, path: str, **query: Any) -> list[Any]:
        """Follow the pages to the end and return what stands on them."""
        result: list[Any] = []
        while True:
            answer = self.get(path, **query)
            assert answer.status_code == 200, answer.content
            page = answer.json()
            result += page["items"]
            if page["next"] is None:
                return result
            query["cursor"] = page["next"]


def make_token(user: User, name: str, scopes: Iterable[str]) -> tuple[ApiToken, str]:
    """Make a token; with events:write it may record every type, as /ci."""
    may: dict[str, Any] = {"event_types": tokens.event_type_names(), "event_source": "/ci"}
    return tokens.make(user, name, scopes, **(may if tokens.RECORDS_EVENTS in scopes else {}))


def program(login: str, *scopes: str, may: tuple[str, ...] = ()) -> Program:
    """Return a program of a new user who has these permissions (`app.codename`)."""
    user = person(login)
    allow(user, *may)
    return Program(user, *scopes)


def allow(user: User, *permissions: str) -> None:
    for permission in permissions:
        app, codename = permission.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )


def problem(answer: HttpResponse, status: int, kind: str = "") -> dict[str, Any]:
    """Return the problem that the answer is, after a look at its form."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    result: dict[str, Any] = json.loads(answer.content)
    assert result["status"] == status
    kind = kind or {400: "malformed", 401: "unauthenticated"}.get(status, "")
    assert result["type"] == (f"urn:tailrace:problem:{kind}" if kind else "about:blank")
    assert result["title"]
    assert result["detail"]
    return result
