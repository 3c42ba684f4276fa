"""The pages of the API's documentation: everything is there, for everybody, and nothing is loaded
from elsewhere."""

import re
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.utils.safestring import SafeString

from tailrace.web.api.docs.fields import Schemas, prose
from tailrace.web.api.docs.pages import reference
from tailrace.web.api.docs.reference import paragraphs
from tailrace.web.api.site import api
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db


def page(address: str = "") -> str:
    answer = Client().get(f"/api/docs{address}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_every_operation_and_message_is_on_the_page_of_its_group() -> None:
    document = api.get_openapi_schema()
    ids = {op["operationId"] for path in document["paths"].values() for op in path.values()}
    ids |= {f"webhook_{name}".replace(".", "-") for name in document["webhooks"]}
    overview = page()
    shown = set()
    for slug in [group.slug for group in reference().groups]:
        found = set(re.findall(r'<h2 id="([^"]+)"', page(f"/{slug}")))
        assert found <= set(re.findall(rf'href="/api/docs/{slug}#([^"]+)"', overview)), slug
        shown |= found
    assert shown == ids


class Outline(HTMLParser):
    """The levels of the headings, and the ids."""

    def __init__(self) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.ids: list[str] = []
        self.landmarks: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.landmarks += [tag] * (tag in ("header", "main"))


@pytest.mark.parametrize("address", ["", "/jobs", "/events", "/webhooks"])
def test_headings_and_landmarks_are_in_order(address: str) -> None:
    outline = Outline()
    outline.feed(page(address))
    assert outline.levels[0] == 1
    assert outline.levels.count(1) == 1
    steps = zip(outline.levels, outline.levels[1:], strict=False)
    assert all(after - before <= 1 for before, after in steps)
    assert len(set(outline.ids)) == len(outline.ids)
    assert outline.landmarks == ["header", "main"]


@pytest.mark.parametrize("address", ["", "/jobs"])
def test_a_page_loads_nothing_from_other_sites_and_leads_home(address: str) -> None:
    html = page(address)
    assert '<a class="tr-brand" href="/me/">' in html
    loaded = re.findall(r'(?:src|<link[^>]* href)="([^"]+)"', html)
    assert len(loaded) >= 3
    for file in loaded:
        assert file.startswith("/static/")
        assert Client().get(file).status_code == 200, file
    assert not re.search(r"<style|style=|<script(?![^>]*src=)| on\w+=", html)


def test_a_signed_in_person_has_the_menu() -> None:
    html = Visitor(person("ann")).client.get("/api/docs").content.decode()
    assert 'aria-label="Your pages"' in html
    assert "Sign out" in html


def test_names_in_backticks_are_shown_as_code() -> None:
    pages = [page(f"/{group.slug}") for group in reference().groups]
    texts = [re.sub("<pre.*?</pre>", "", each, flags=re.DOTALL) for each in pages]
    assert [re.findall(".{0,40}`.{0,40}", each) for each in texts] == [[]] * len(texts)


def test_there_is_no_page_of_another_group() -> None:
    assert Client().get("/api/docs/nothing").status_code == 404
    assert Client().post("/api/docs").status_code == 405


def test_descriptions_cannot_bring_markup() -> None:
    assert prose("a <b> `c&d`\n e") == "a &lt;b&gt; <code>c&amp;d</code> e"
    assert paragraphs("one\n\n  two\nthree") == ["one", "two three"]
    assert isinstance(prose("x"), SafeString)


def test_fields_are_told_in_words() -> None:
    schemas = Schemas({"Point": {"type": "object", "properties": {"lat": {"type": "number"}}}})
    schema = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 5, "description": "its `name`"},
            "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
            "points": {"type": "array", "items": {"$ref": "#/components/schemas/Point"}},
            "state": {"enum": ["on", "off"], "default": "on"},
        },
    }
    rows = [(row.name, row.kind, row.required, row.about) for row in schemas.fields(schema)]
    assert rows == [
        ("name", "text", True, "its <code>name</code> (at most 5 characters)"),
        ("at", "time or null", False, ""),
        ("points", "list of object", False, ""),
        ("points.lat", "number", False, ""),
        ("state", "“on” or “off”", False, "default: <code>on</code>"),
    ]
