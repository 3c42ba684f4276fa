"""Search on its page and in the API."""

from datetime import UTC, datetime

import pytest
from django.conf import settings

from tailrace.domains.records.models import Record
from tailrace.domains.records.search.indexing.backends import backends
from tests.records.kit import deposit, record, source
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _records() -> None:
    rows = [record(f"Snow depth, series {number}") for number in range(30)]
    rows.append(record("Music", description="<b>A</b> concert of baroque music"))
    for backend in backends().values():
        backend.index(rows)


def test_the_page_shows_results_page_by_page() -> None:
    ann = Visitor(person("ann"))
    assert "You can use words" in ann.text("/records/")
    first = ann.get("/records/", q="snow depth")
    assert first.content.count(b"<mark>Snow</mark>") == 20
    assert "More results" in words(first)
    second = ann.get("/records/", q="snow depth", page=2)
    assert second.content.count(b"<mark>Snow</mark>") == 10
    assert "More results" not in words(second)
    assert "No records match" in words(ann.get("/records/", q="qqqq"))
    assert "uses the model hashing:256" in words(ann.get("/records/", q="qqqq", index="vector"))
    assert "hashing:256" not in words(ann.get("/records/", q="snow", index="keyword"))
    assert "found by words and meaning" in words(first)
    assert ann.get("/records/", q="snow", index="other").status_code == 400
    assert ann.get("/records/", q="snow", page="11").status_code == 404


def test_an_empty_page_explains_records_and_the_first_step() -> None:
    ann = Visitor(person("ann"))
    assert "Newest records Deposit a record Music Novak, Ana" in ann.text("/records/")
    Record.objects.all().delete()
    page = ann.text("/records/")
    assert "No records yet A record describes a work" in page
    assert "Start by depositing a record." in page
    assert "Sources of records" not in page, "only for those who may see them"


def test_facets_narrow_the_results() -> None:
    library = source("library")
    rows = [
        record(
            f"Snow depth in {year}",
            deposition=deposit(source_id=library.pk),
            language="sl",
            datestamp=datetime(year, 5, 1, tzinfo=UTC),
        )
        for year in (2021, 2022, 2022)
    ]
    for backend in backends().values():
        backend.index(rows)
    ann = Visitor(person("ann"))
    page = ann.text("/records/?q=snow&index=keyword")
    assert "Source deposited 30 library 3" in page
    assert "Language en 30 sl 3" in page
    assert "Year 2020 30 2022 2 2021 1" in page
    filtered = ann.get("/records/", q="snow", index="keyword", source="library", year="2022")
    assert filtered.content.count(b"<mark>Snow</mark>") == 2
    assert "2022 × , remove 2" in words(filtered)
    assert "q=snow&amp;index=keyword&amp;source=library" in filtered.content.decode()
    none = ann.get("/records/", q="snow", index="keyword", source="other")
    assert "Show all results" in words(none)


def test_a_record_has_a_citation_and_an_address() -> None:
    row = record("Snow depth.", creators=["Novak, Ana", "Kos, Bor"])
    page = Visitor(person("ann")).text(f"/records/{row.pk}")
    address = f"{settings.PUBLIC_URL}/records/{row.pk}"
    assert f"Novak, Ana; Kos, Bor (2020). Snow depth. Version 1. {address}" in page
    assert f"The address {address} stays the same." in page


def test_the_api_gives_every_result_once() -> None:
    ann = Program(person("ann"))
    items = ann.all("/records/search", q="snow depth", limit=7)
    assert len({item["id"] for item in items}) == len(items) == 30
    assert items[0]["title"][0] == {"text": "Snow", "is_match": True}
    assert set(items[0]["places"]) == {"keyword", "vector"}
    methods = ann.get("/records/search", q="snow").json()["methods"]
    assert "the model hashing:256" in methods["vector"]
    [music] = ann.all("/records/search", q="concert", index="keyword")
    assert {"text": "concert", "is_match": True} in music["snippet"]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({}, "q"),
        ({"q": ""}, "q"),
        ({"q": "a" * 501}, "q"),
        ({"q": "a", "index": "other"}, "index"),
        ({"q": "a", "limit": 51}, "limit"),
        ({"q": "a", "cursor": "Wy0xXQ"}, "cursor"),
        ({"q": "a", "cursor": "WzEwMDBd"}, "cursor"),
    ],
)
def test_a_wrong_parameter_is_named(query: dict[str, object], parameter: str) -> None:
    answer = Program(person("ann")).get("/records/search", **query)
    assert problem(answer, 422, "invalid")["errors"][0]["parameter"] == parameter
