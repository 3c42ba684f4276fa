"""Search: by words, by meaning, fused, within bounds, and only what the user may see."""

import pytest
from django.contrib.auth.models import Permission, User
from pytest_django.fixtures import Settings

from tailrace.db.query import execute
from tailrace.domains.records.models import Record
from tailrace.domains.records.search import searching
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.domains.records.search.searching import (
    InvalidSearch,
    Results,
    SearchUnavailable,
    search,
)
from tailrace.domains.records.search.snippets import PartOut
from tests.records.kit import record
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return person("ann")


def indexed(title: str, **fields: object) -> Record:
    row = record(title, **fields)
    for backend in backends().values():
        backend.index([row])
    return row


def titles(results: Results) -> list[str]:
    return [hit.record.title for hit in results.hits]


def test_a_record_in_both_indexes_comes_before_one_in_either(ann: User) -> None:
    indexed("Rivers", description="many other things, among them hydrology and its history")
    indexed("Hydrologic maps")
    indexed("Hydrology of rivers")
    results = search(ann, "hydrology rivers")
    assert titles(results)[0] == "Hydrology of rivers"
    assert results.hits[0].places == {"keyword": 1, "vector": 1}
    assert set(titles(search(ann, "hydrology rivers", "vector"))) >= {"Hydrologic maps"}
    assert "Hydrologic maps" not in titles(search(ann, "hydrology rivers", "keyword"))


def test_pages_have_every_result_once(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {indexed(f"Snow depth, series {number}").title for number in range(25)}
    pages = [search(ann, "snow depth", offset=offset, size=10) for offset in (0, 10, 20)]
    assert [page.has_more for page in pages] == [True, True, False]
    assert sorted(title for page in pages for title in titles(page)) == sorted(rows)
    assert search(ann, "snow depth", offset=200).hits == []


def test_closed_and_withdrawn_records_are_only_for_those_who_may_see_them(ann: User) -> None:
    bob = person("bob")
    indexed("Closed lake", access="closed", owner=bob)
    gone = indexed("Withdrawn lake")
    Record.objects.filter(pk=gone.pk).update(is_deleted=True)
    assert titles(search(ann, "lake")) == []
    assert titles(search(bob, "lake")) == ["Closed lake"]
    ann.user_permissions.add(Permission.objects.get(codename="view_record"))
    assert titles(search(User.objects.get(pk=ann.pk), "lake")) == ["Closed lake"]


def test_words_that_match_are_marked_in_plain_text(ann: User) -> None:
    indexed(
        "<b>Maps</b> of \x02rivers\x03",
        description="<script>alert(1)</script> " + "nothing " * 500 + "a map & the river's bank",
    )
    [hit] = search(ann, "river map").hits
    assert PartOut(text="rivers", is_match=True) in hit.snippet.title
    marked = [part.text for part in hit.snippet.description if part.is_match]
    assert marked == ["map", "river"]
    assert "\x02" not in str(hit.snippet)


@pytest.mark.parametrize(
    ("text", "index", "message"),
    [
        ("", "", "the search text is empty"),
        (" \x00 ", "", ""),
        ("a" * 501, "", "the search text has 501 characters; at most 500"),
        ("lake", "other", "no index is called 'other'; the indexes are keyword, vector"),
    ],
)
def test_a_search_that_cannot_be_made_says_why(
    ann: User, text: str, index: str, message: str
) -> None:
    if message:
        with pytest.raises(InvalidSearch, match=message):
            search(ann, text, index)
    else:
        assert search(ann, text, index).hits == []


def test_an_index_that_takes_too_long_is_left_out(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words are found while another session locks the vectors."""
    monkeypatch.setattr(searching, "SECONDS", 0.5)
    indexed("A lake")
    execute(_SLOW)
    results = search(ann, "lake")
    assert titles(results) == ["A lake"]
    assert results.left_out == ["vector"]
    with pytest.raises(SearchUnavailable, match="took too long"):
        search(ann, "lake", "vector")


_SLOW = """
ALTER TABLE tailrace_records_vectorentry RENAME TO slow;
CREATE VIEW tailrace_records_vectorentry AS SELECT slow.* FROM slow, pg_sleep(5)
"""


def test_a_model_that_is_gone_leaves_the_words(ann: User, settings: Settings) -> None:
    indexed("A lake")
    settings.RECORDS_MODEL = "/no/such/folder"
    execute("DELETE FROM tailrace_records_embeddingindex")
    results = search(ann, "lake")
    assert titles(results) == ["A lake"]
    assert results.left_out == ["vector"]
