"""Times have one format, with their zone, on every page: `2026-11-21 08:00:00 UTC`."""

import re

import pytest

from tests.web.all_pages import URLS, AllPages
from tests.web.visitor import without_tags

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.urls(URLS)]

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
ELSEWHERE = {
    "GET /timeline/days/<str:day>": "in the time zone of the place, which the page names",
    "GET /admin/django_celery_beat/clockedschedule/": "how that package names its rows",
}


def test_no_page_shows_a_time_in_another_format() -> None:
    wrong = {}
    for page in AllPages():
        if page.name.startswith(tuple(ELSEWHERE)):
            continue
        text = OUR_FORMAT.sub("", without_tags(NOT_OURS.sub(" ", page.answer.content.decode())))
        if others := [
            text[max(0, each.start() - 40) : each.end() + 20]
            for each in OTHER_FORMATS.finditer(text)
        ]:
            wrong[page.name] = others
    assert wrong == {}
