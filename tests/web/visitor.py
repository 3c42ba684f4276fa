"""A client for the tests of pages, like a browser without scripts."""

import re
from html import unescape
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from tailrace.db.query import database_now

HTMX = {"HX-Request": "true"}


class Visitor:
    """A signed-in user; changes need the CSRF token, as in a browser."""

    def __init__(self, user: User | None) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.user = user
        if user is not None:
            self.client.force_login(user)
            confirm_session(self.client)

    def get(self, path: str, htmx: bool = False, **query: Any) -> HttpResponse:
        return self.client.get(path, query, headers=HTMX if htmx else {})

    def post(self, path: str, data: Any = None, htmx: bool = False, **extra: Any) -> HttpResponse:
        """POST with the CSRF token of a page, as its forms do; a redirect is not followed."""
        self.client.get("/me/feeds")
        cookie = self.client.cookies.get("csrftoken")
        headers = {"X-CSRFToken": cookie.value if cookie else "", **(HTMX if htmx else {})}
        return self.client.post(path, data or {}, headers=headers, **extra)

    def text(self, path: str) -> str:
        """Return the text of the page."""
        return words(self.get(path))


def confirm_session(client: Client) -> None:
    """Let the session be one whose user has entered the password just now."""
    session = client.session
    session["confirmed_at"] = database_now().timestamp()
    session.save()


def words(answer: HttpResponse) -> str:
    """Return the text of a page, without tags, in one line."""
    return without_tags(answer.content.decode())


def without_tags(markup: str) -> str:
    """Return the text in one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())
