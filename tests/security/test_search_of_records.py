"""Attacks by searches of records: what an attacker got is in the names."""

import re

import pytest
from django.contrib.auth.models import User

from tailrace.domains.records.models import KeywordEntry, Record
from tailrace.domains.records.pages import search
from tailrace.domains.records.search import searching
from tailrace.domains.records.search.indexing.backends import backends
from tests.kit import another_transaction
from tests.records.kit import record
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "Secret weather of Ljubljana"
HTML = '<img src=x onerror=alert(1)> "><script>alert(2)</script> & weather'


def indexed(title: str, **fields: object) -> Record:
    row = record(title, **fields)
    for backend in backends().values():
        backend.index([row])
    return row


@pytest.mark.parametrize("index", ["", "keyword", "vector"])
@pytest.mark.parametrize(
    "text", [SECRET, "secret", "-nothing secret", '"weather of Ljubljana"', "secret or x", "Secrt"]
)
def test_a_closed_record_showed_up_in_a_search(index: str, text: str) -> None:
    indexed(SECRET, access="closed", owner=person("bob"), description=SECRET)
    ann = Program(person("ann"))
    answer = ann.get("/records/search", q=text, index=index)
    assert answer.status_code == 200
    assert answer.json()["items"] == []
    page = Visitor(ann.user).get("/records/", q=text, index=index)
    assert "No records match" in words(page)


def test_a_facet_told_of_records_of_others() -> None:
    for number in range(3):
        indexed(f"Weather {number}")
    indexed(f"Weather {SECRET}", access="closed", owner=person("bob"), language="tlh")
    page = Visitor(person("ann")).get("/records/", q="weather", index="keyword")
    assert "tlh" not in page.content.decode()
    assert page.context["results"].facets["language"][0].count == 3
    filtered = Visitor(person("carl")).get("/records/", q="weather", language="tlh")
    assert "No records match" in words(filtered)


@pytest.mark.parametrize("value", ["x" * 5000, "\x02", "' OR 1=1 --", HTML, "(deposited)", "-1"])
@pytest.mark.parametrize("name", ["source", "language", "year"])
def test_an_odd_filter_was_an_error_or_html(name: str, value: str) -> None:
    indexed("weather")
    answer = Visitor(person("ann")).get("/records/", q="weather", **{name: value})
    assert answer.status_code == 200
    assert "<img src=x" not in answer.content.decode()


def test_a_citation_brought_html_into_the_page() -> None:
    row = record(HTML, creators=[HTML] * 30)
    content = Visitor(person("ann")).get(f"/records/{row.pk}").content.decode()
    assert "<img src=x" not in content
    assert "et al. (2020)" in content


def test_a_closed_or_withdrawn_record_was_among_the_newest() -> None:
    bob = person("bob")
    record(SECRET, access="closed", owner=bob)
    record("Withdrawn weather", is_deleted=True)
    for number in range(search.NEWEST + 3):
        record(f"Weather {number}")
    page = Visitor(person("ann")).get("/records/").content.decode()
    assert SECRET not in page
    assert "Withdrawn" not in page
    assert page.count("/records/") > search.NEWEST
    assert len(re.findall(r'href="/records/\d+"', page)) == search.NEWEST
    Record.objects.exclude(owner=bob).delete()
    assert SECRET in Visitor(bob).text("/records/")


def test_hidden_records_made_the_page_read_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_READ", 2)
    record("Open weather")
    for number in range(2):
        record(f"{SECRET} {number}", access="closed", owner=person(f"bob{number}"))
    assert "Open weather" not in Visitor(person("ann")).text("/records/"), "only two were read"


def test_a_record_that_became_closed_was_still_found_by_its_index_entries() -> None:
    row = indexed(SECRET)
    ann = Program(person("ann"))
    assert len(ann.get("/records/search", q=SECRET).json()["items"]) == 1
    Record.objects.filter(pk=row.pk).update(access="closed")
    assert ann.get("/records/search", q=SECRET).json()["items"] == []


def test_a_title_or_a_search_brought_html_into_the_page() -> None:
    indexed(HTML, description=HTML, creators=[HTML], language="en")
    page = Visitor(person("ann")).get("/records/", q=f"weather {HTML}", index="keyword")
    content = page.content.decode()
    assert "<mark>weather</mark>" in content
    assert "<img src=x" not in content
    assert "<script>alert" not in content


@pytest.mark.parametrize(
    "text",
    [
        "'; DROP TABLE tailrace_records_record; --", "%", "%s %(text)s", "\\", "a:*b & | !",
        "((((", '"""', "\x00", "{1,2}", "[1]", "$1", "\x02\x03",
        "𝕏" * 250, "or", "-" * 500, "a " * 250,
    ],
)  # fmt: skip
def test_an_odd_text_was_an_error_of_the_server(text: str) -> None:
    indexed("weather")
    answer = Program(person("ann")).get("/records/search", q=text)
    assert answer.status_code in (200, 400, 422), answer.content


def test_searches_were_counted_as_ordinary_requests(settings, clock) -> None:
    settings.USER_RATE, settings.USER_BURST = 0.001, 30
    clock.stop()
    ann = Program(person("ann"))
    statuses = [ann.get("/records/search", q="weather").status_code for _ in range(7)]
    assert statuses == [200] * 6 + [429]
    problem(ann.get("/records/search", q="weather"), 429, "rate-limited")
    visitor = Visitor(User.objects.create_user("bob"))
    statuses = [visitor.get("/records/", q="weather").status_code for _ in range(6)]
    assert statuses == [200] * 5 + [429]


def test_a_search_kept_the_database_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its statement takes as long as somebody else holds the table."""
    monkeypatch.setattr(searching, "SECONDS", 0.05)
    monkeypatch.setattr(searching, "LOCK_SECONDS", 30)
    backends()["keyword"].index([record("Series")])
    with another_transaction(f"LOCK TABLE {KeywordEntry._meta.db_table}"):
        answer = Program(person("ann")).get("/records/search", q="series", index="keyword")
    problem(answer, 503, "busy")
    assert int(answer["Retry-After"]) > 0


def test_a_token_without_the_scope_searched() -> None:
    ann = Program(person("ann"), "events:read")
    problem(ann.get("/records/search", q="weather"), 403, "scope-missing")
