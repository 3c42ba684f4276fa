"""axe finds nothing on any page: by all of its rules, light and on a large screen; by those that
depend on looks, dark and on a small one."""

import re

import pytest
from playwright.sync_api import Browser

from tests.browser.axe import EVERY_RULE, RULES_OF_LOOKS, findings
from tests.browser.site import new_tab
from tests.web.all_pages import URLS, AllPages

pytestmark = [
    pytest.mark.once,
    pytest.mark.slow,
    pytest.mark.django_db,
    pytest.mark.urls(URLS),
]
NEW_CLASSES = 20
"""Classes that no page before had, from which on a page has something of its own."""
SIDEBAR = "#nav-sidebar"
"""Of the admin: the same on each of its pages, so it is looked at on the first one."""
CLASSES = re.compile(r'<(\w+)[^>]*?\sclass="([^"]*)"')


def classes_of(text: str) -> set[tuple[str, str]]:
    """Return the classes of a page, each with the tag that has it."""
    return {(tag, name) for tag, names in CLASSES.findall(text) for name in names.split()}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_axe_finds_nothing(browser: Browser, every: bool) -> None:
    """On pages that have something of their own; in the long form on every page there is."""
    found: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    pages = AllPages()
    with new_tab(browser, pages) as tab:
        for page in pages:
            classes = classes_of(page.answer.content.decode())
            new = len(classes - seen) >= NEW_CLASSES  # else it looks as pages before it
            if not (new or every):
                continue
            seen |= classes
            tab.open(page)
            besides = () if page.name == "GET /admin/" else (SIDEBAR,)
            found[page.name] = findings(tab.page, EVERY_RULE, besides)
            if new:
                tab.darken()
                dark = findings(tab.page, RULES_OF_LOOKS, besides)
                found[page.name] += [f"dark, small: {line}" for line in dark]
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert len(found) > (200 if every else 20)
