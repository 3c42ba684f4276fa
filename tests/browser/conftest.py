"""A real browser against a real server. Without Chromium the tests are skipped, with the reason."""

import os
import re
import shutil
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission, User
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.screens import Scheme
from tests.kit import PATIENCE
from tests.web.visitor import Visitor

REFUSED = re.compile("responded with a status of (400|401|422) ")
"""The answers to a wrong search or form and an ended session: Chromium logs them as errors."""
expect.set_options(timeout=1000 * PATIENCE)
# The first one has no windows to draw, and takes a quarter less CPU.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox --headless=new --disable-gpu --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()


# Not for the session: the loop and the variable below must be gone before another folder's tests.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    # Playwright keeps an event loop in this thread; this lets Django work beside it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def staff(transactional_db: None) -> Callable[..., User]:
    """Return a maker of staff with a password, `a long password`, and some permissions."""

    def make(name: str, *permissions: str) -> User:
        user = User.objects.create_user(name, password="a long password", is_staff=True)
        codenames = [permission.split(".")[1] for permission in permissions]
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        return user

    return make


@pytest.fixture
def visit(browser: Browser, live_server: object) -> Iterator[Callable[..., Page]]:
    """Return `visit(user, address, width=…, scheme=…)`: open a page in a session of the user.

    The form that people sign in with has a test of its own. When the test is over, nothing may
    have been logged to the browser's console.
    """
    contexts, complaints = [], []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not REFUSED.search(message.text):
            complaints.append(message.text)

    def open_page(user: User, address: str, width: int = 1440, scheme: Scheme = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, base_url=str(live_server)
        )
        context.set_default_timeout(1000 * PATIENCE)
        contexts.append(context)
        session = Visitor(user).client.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": session, "url": str(live_server)}])
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.wait_for_url(f"**{address}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
