"""All pages, rendered once for all tests of this file.

axe finds nothing on any page: by all of its rules, light and on a large screen; by those that
depend on looks, dark and on a small one. Times have one format, with their zone, on every page:
`2026-11-21 08:00:00 UTC`.
"""

import re

import pytest
from playwright.sync_api import Browser

from tests.browser.axe import EVERY_RULE, RULES_OF_LOOKS, findings
from tests.browser.site import TEXTS, new_tab
from tests.web.all_pages import URLS, AllPages, ShownPage
from tests.web.visitor import without_tags

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.urls(URLS)]
NEW_CLASSES = 40
"""Classes that no page before had, from which on a page has something of its own."""
SIDEBAR = "#nav-sidebar"
"""Of the admin: the same on each of its pages, so it is looked at on the first one."""
CLASSES = re.compile(r'<(\w+)[^>]*?\sclass="([^"]*)"')


OUR_FORMAT = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:[A-Z]{3,5}|[+-]\d{2,4})\b")
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
OTHER_FORMATS = re.compile(
    rf"\d{{1,2}}:\d\d|\b\d{{1,2}} ?[ap]\.?m\b|\bnoon\b|\bmidnight\b|\d{{4}}-\d\d-\d\dT"
    rf"|\b(?:{MONTHS})[a-z]*\.? \d{{1,2}}, \d{{4}}",
    re.IGNORECASE,
)
NOT_OURS = re.compile(
    r"<(pre|code|textarea|script|option)\b.*?</\1>"  # payloads and examples, as they are
    r'|<div class="tr-x" aria-hidden="true">.*?</div>',  # the axis of a chart; its table has more
    re.DOTALL,
)
ADDRESSES = re.compile(r"https?://\S+")
"""Their ports look like times."""
ELSEWHERE = {
    "GET /timeline/days/<str:day>": "in the time zone of the place, which the page names",
    "GET /admin/django_celery_beat/clockedschedule/": "how that package names its rows",
}


_rendered: dict[bool, list[ShownPage]] = {}
every_page = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])


@pytest.fixture
def pages(db: None, every: bool) -> list[ShownPage]:
    """All pages, or all kinds of them, and last the script of texts that the admin's pages load."""
    if every not in _rendered:
        pages = AllPages()
        texts = ShownPage("admin", TEXTS, TEXTS, pages.ask("admin", TEXTS))
        _rendered[every] = [*pages.pages(every), texts]
    return _rendered[every]


def classes_of(text: str) -> set[tuple[str, str]]:
    """Return the classes of a page, each with the tag that has it."""
    return {(tag, name) for tag, names in CLASSES.findall(text) for name in names.split()}


@pytest.mark.once
@every_page
def test_axe_finds_nothing(browser: Browser, pages: list[ShownPage], every: bool) -> None:
    """On pages that have something of their own; in the long form on every page there is."""
    found: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    *documents, texts = pages
    with new_tab(browser, texts.answer) as tab:
        for page in documents:
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
    assert len(found) > (200 if every else 10)


@every_page
def test_no_page_shows_a_time_in_another_format(pages: list[ShownPage], every: bool) -> None:
    wrong = {}
    for page in pages[:-1]:
        if page.name.startswith(tuple(ELSEWHERE)):
            continue
        text = without_tags(NOT_OURS.sub(" ", page.answer.content.decode()))
        text = OUR_FORMAT.sub("", ADDRESSES.sub("", text))
        if others := [
            text[max(0, each.start() - 40) : each.end() + 20]
            for each in OTHER_FORMATS.finditer(text)
        ]:
            wrong[page.name] = others
    assert wrong == {}
    assert len(pages) > (200 if every else 100)
