"""Injected markup runs nothing: every answer has a policy, error pages and the admin included."""

import re

import pytest
from django.contrib.auth.models import User
from django.template.loader import get_template
from django.test import Client
from django.urls import path

from tailrace.config.urls import urlpatterns as project_urls
from tailrace.web.accounts.security.password_hasher import TooManyAtOnce
from tests.kit import ROOT
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db


def broken(request: object) -> None:
    raise RuntimeError("a secret of the inside")


def busy(request: object) -> None:
    raise TooManyAtOnce


urlpatterns = [*project_urls, path("broken", broken), path("busy", busy)]


@pytest.fixture
def root() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root"))
    return client


def directives(answer: object) -> dict[str, list[str]]:
    """Return the sources of each directive of the answer's policy."""
    policy = answer["Content-Security-Policy"]  # type: ignore[index]
    parts = [part.split() for part in policy.split(";") if part.strip()]
    return {name: sources for name, *sources in parts}


ADDRESSES = [
    "/", "/me/", "/me/feeds", "/me/account", "/accounts/login/", "/accounts/password/reset/",
    "/healthz", "/admin/", "/admin/auth/user/", "/admin/tailrace_jobs/job/", "/admin/jsi18n/",
    "/admin/login/", "/api/docs", "/api/docs/jobs", "/api/openapi.json", "/api/events", "/nothing",
    "/admin/nothing", "/api/nothing", "/static/tailrace/jobs/icon.svg", "/static/nothing.js",
    "/feeds/me/none.atom", "/unsubscribe/none", "/photos/", "/broken", "/busy",
]  # fmt: skip


@pytest.mark.urls("tests.security.test_csp")
@pytest.mark.parametrize("address", ADDRESSES)
def test_no_answer_lets_injected_scripts_run(root: Client, address: str) -> None:
    for client in (root, Client(raise_request_exception=False)):
        answer = client.get(address)
        policy = directives(answer)
        assert policy["default-src"] == ["'none'"]
        scripts = policy.get("script-src", [])
        assert "'unsafe-inline'" not in scripts
        assert set(scripts) <= {"'self'", "'unsafe-eval'"}
        assert "'unsafe-eval'" not in scripts or address.startswith("/admin/")
        assert "sandbox" in policy or policy["frame-ancestors"] == ["'none'"]
        assert "sandbox" in policy or policy["base-uri"] == ["'none'"]
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert address.startswith("/static/") or answer["X-Frame-Options"] == "DENY"
        assert answer["Referrer-Policy"] in ("same-origin", "no-referrer")
        assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "camera=()" in answer["Permissions-Policy"]


@pytest.mark.urls("tests.security.test_csp")
def test_error_pages_have_the_policy_and_tell_nothing_of_the_inside(root: Client) -> None:
    strict = Client(raise_request_exception=False, enforce_csrf_checks=True)
    anonymous = Client(raise_request_exception=False)
    member = Client(raise_request_exception=False)
    member.force_login(person("ann"))
    answers = {
        400: anonymous.get("/me/", headers={"Host": "evil.example"}),
        403: member.get("/overview/panels"),
        404: anonymous.get("/nothing"),
        405: anonymous.get("/accounts/logout/", headers={"Accept": "text/html"}),
        500: root.get("/broken"),
        503: root.get("/busy"),
    }
    answers[4030] = strict.post("/accounts/login/", {"username": "x", "password": "y"})
    for status, answer in answers.items():
        assert answer.status_code == (403 if status == 4030 else status)
        assert "'unsafe" not in answer["Content-Security-Policy"]
        text = answer.content.decode()
        assert "a secret of the inside" not in text
        assert not re.search(r"<style|style=|<script(?![^>]*src=)| on\w+=", text), status
    assert answers[503]["Retry-After"]
    assert "without a valid token" in answers[4030].content.decode()


def test_no_page_of_ours_needs_an_exception() -> None:
    """Scripts, styles and handlers stand in files; mails and the reports' PDF have no policy
    and may have styles."""
    own = [
        file
        for room in ("web", "jobs", "subscriptions", "domains")
        for file in (ROOT / room).rglob("templates/**/*.html")
        if file.name not in ("mail.html", "digest.html", "document.html")
        and file.parent.name != "builds.build_fail"
    ]
    assert len(own) > 60
    for file in own:
        text = file.read_text()
        assert not re.search(r"<style|\bstyle=|<script(?![^>]*\bsrc=)|\son[a-z]+=", text), file


PAGES_OF_DJANGO = ("400", "403", "403_csrf", "404", "500")


def test_every_error_has_its_page() -> None:
    for name in (*PAGES_OF_DJANGO, "tailrace/web/errors/405", "tailrace/web/errors/503"):
        assert "Tailrace" in get_template(f"{name}.html").render()


def test_the_admin_allows_styles_in_attributes_alone(root: Client) -> None:
    policy = directives(root.get("/admin/tailrace_jobs/job/"))
    assert policy["style-src"] == ["'self'"]
    assert policy["style-src-attr"] == ["'unsafe-inline'"]
    assert b"<style" not in root.get("/admin/tailrace_jobs/job/").content
