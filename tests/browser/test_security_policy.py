"""The Content-Security-Policy in a real browser: no page breaks it, and it stops what is injected.

The fixture `visit` fails if anything is logged to the console, as a violation is.
"""

from collections.abc import Callable

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from tailrace.jobs.models import Job
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tests.browser.screens import SCREENS, Scheme, assert_fits, take_picture
from tests.jobs import operators

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label_lower)


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root", "root@example.org", "a long password")


def _pages(root: User, every: bool) -> list[str]:
    """Return the address of each kind of page, with something on it. `every`: all lists of the
    admin, and the pages that other tests of this folder open, each with `visit`; else the list of
    jobs, which has a template of its own, and every fourth."""
    job = operators.job(error="no-space")
    endpoint, _secret = endpoints.create(root, "https://example.org/hook")
    elsewhere = [
        "/", "/me/subscriptions", "/me/inbox", "/me/feeds", "/me/endpoints", "/me/preferences",
        f"/me/endpoints/{endpoint.pk}", "/me/account", "/accounts/password/change/",
        "/accounts/sign-out-everywhere/", "/accounts/second-factor/set-up/", "/photos/",
        "/photos/mine", "/api/docs", f"/admin/tailrace_jobs/job/{job.pk}/change/",
    ]  # fmt: skip
    own = [
        "/admin/", f"/admin/auth/user/{root.pk}/change/", f"/admin/auth/user/{root.pk}/password/",
        f"/admin/auth/user/{root.pk}/history/", f"/admin/auth/user/{root.pk}/delete/",
    ]  # fmt: skip
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in (MODELS if every else [Job, *MODELS[::4]])
    ]
    own += [*lists, "/admin/auth/user/add/", "/admin/django_celery_beat/periodictask/add/"]
    return [*elsewhere, *own] if every else own


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_no_page_breaks_its_policy(root: User, visit: Callable[..., Page], every: bool) -> None:
    page = visit(root, "/me/inbox")
    for address in _pages(root, every):
        page.goto(address)
        page.wait_for_load_state("networkidle") if "docs" in address else None
        assert page.title(), address


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_pages_of_the_admin_and_of_accounts_look_as_before(
    root: User, visit: Callable[..., Page], width: int, scheme: Scheme
) -> None:
    page = visit(root, "/me/account", width=width, scheme=scheme)
    for address in (
        "/me/account", "/accounts/password/change/", "/accounts/sign-out-everywhere/",
        "/accounts/second-factor/set-up/", "/admin/tailrace_jobs/job/", "/admin/auth/user/",
    ):  # fmt: skip
        page.goto(address)
        take_picture(page, f"{address.strip('/').replace('/', '-')}-{width}-{scheme}")
        assert_fits(page, address)
    colour = page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--color-primary-600')"
    )
    assert colour.strip().startswith("oklch("), "the colours of the admin come from a file"


def test_what_is_injected_into_a_page_does_not_run(root: User, visit: Callable[..., Page]) -> None:
    page = visit(root, "/me/inbox").context.new_page()  # its console is not watched
    page.goto("/me/account")
    blocked = page.evaluate(
        """() => new Promise((resolve) => {
          const report = (event) => resolve(event.violatedDirective);
          document.addEventListener("securitypolicyviolation", report);
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
        })"""
    )
    assert blocked.startswith("script-src")
    assert page.evaluate("window.ran") is None
    expect(page.get_by_role("heading", name="My account")).to_be_visible()
