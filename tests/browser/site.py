"""Pages of AllPages in tabs of a browser, from a server that has the pages and the static files.

The pages are rendered in the test's own transaction; what a page fetches later, such as its news,
gets 204.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.test import Client
from playwright.sync_api import Browser, Page

from tests.browser.screens import Scheme
from tests.kit import PATIENCE
from tests.servers.web import ReceivedRequest, Response, serving
from tests.web.all_pages import ShownPage

NOT_SENT = {"Content-Length", "Date", "Cache-Control", "Vary", "Expires", "ETag"}
"""Headers that the server sends itself, or that would keep a static file from the cache."""
TEXTS = "/admin/jsi18n/"
"""A script of the admin that is no static file."""
CACHED = {"Cache-Control": "max-age=3600"}
DARK_ADMIN = "() => document.querySelector('html[x-data]')?.classList.add('dark')"
"""What unfold does as a page of the admin begins, and not when the scheme changes later."""


class Tab:
    """Shows one page after the other."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self._url = page, url
        self.answers: dict[str, Response] = {}

    def open(self, shown: ShownPage) -> None:
        """Show the page: light, on a large screen."""
        self._screen(1440, "light")
        self.answers[shown.path] = _response(shown.answer)
        self.page.goto(self._url + shown.path)
        del self.answers[shown.path]

    def darken(self) -> None:
        """Show it dark, on a small screen."""
        self._screen(375, "dark")
        self.page.evaluate(DARK_ADMIN)

    def _screen(self, width: int, scheme: Scheme) -> None:
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size({"width": width, "height": 900})


@contextmanager
def new_tab(browser: Browser, texts: Any) -> Iterator[Tab]:
    """`texts` is the answer for TEXTS. Yield a tab whose context and server end with it."""
    static: dict[str, Response] = {}

    def respond(request: ReceivedRequest) -> Response:
        if shown := tab.answers.get(request.path):
            return shown
        if request.path.startswith("/static/"):
            if request.path not in static:
                static[request.path] = _response(Client().get(request.path), CACHED)
            return static[request.path]
        return Response(204)

    with serving(respond) as server:
        context = browser.new_context(reduced_motion="reduce")
        context.set_default_timeout(1000 * PATIENCE)
        tab = Tab(context.new_page(), server.url)
        tab.answers[TEXTS] = _response(texts, CACHED)
        try:
            yield tab
        finally:
            context.close()


def _response(answer: Any, more: dict[str, str] | None = None) -> Response:
    headers = {name: value for name, value in answer.items() if name not in NOT_SENT}
    return Response(answer.status_code, answer.getvalue(), headers | (more or {}))
