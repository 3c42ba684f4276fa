"""The index of words: forms of the record's language, ranks, and what a search may ask."""

import pytest
from django.contrib.auth.models import AnonymousUser

from tailrace.domains.records.models import KeywordEntry, Record
from tailrace.domains.records.models.visibility import visible_records
from tailrace.domains.records.search.indexing.backends import backends
from tests.records.kit import record

pytestmark = pytest.mark.django_db


def indexed(title: str, **fields: object) -> Record:
    row = record(title, **fields)
    backends()["keyword"].index([row])
    return row


def search(text: str, limit: int = 10) -> list[str]:
    index = backends()["keyword"]
    ids = index.search(text, visible_records(AnonymousUser()).current(), limit)
    titles = dict(Record.objects.values_list("pk", "title"))
    return [titles[id] for id in ids]


def test_words_are_found_in_the_forms_of_the_records_language() -> None:
    indexed("Measurements of rivers", language="en")
    indexed("Messungen der Flüsse", language="de")
    indexed("Mittaukset joella", language="xx")
    assert search("measuring river") == ["Measurements of rivers"]
    assert search("Messung") == ["Messungen der Flüsse"]
    assert search("mittaus") == []
    assert search("JOELLA") == ["Mittaukset joella"]


def test_the_title_counts_most_then_keywords_creators_and_description() -> None:
    indexed("in the description", description="about hydrology")
    indexed("in the creators", creators=["Hydrology, Ana"])
    indexed("in the keywords", keywords=["hydrology"])
    indexed("Hydrology")
    expected = ["Hydrology", "in the keywords", "in the creators", "in the description"]
    assert search("hydrology") == expected
    assert search("hydrology", limit=2) == expected[:2]


def test_phrases_alternatives_and_exclusions() -> None:
    indexed("Snow on the lake")
    indexed("Lake of snow")
    indexed("Deserts")
    assert search('"lake of snow"') == ["Lake of snow"]
    assert set(search("snow or deserts")) == {"Snow on the lake", "Lake of snow", "Deserts"}
    assert search("lake -snow") == []


@pytest.mark.parametrize(
    "text", ["", "the", "!!!", '"', "-", "' OR 1=1 --", "a" * 3000, "\\", ":*"]
)
def test_odd_queries_find_nothing_and_break_nothing(text: str) -> None:
    indexed("Snow on the lake")
    assert search(text) == []


def test_an_entry_follows_its_record_and_an_older_version_changes_nothing() -> None:
    row = indexed("Old title")
    Record.objects.filter(pk=row.pk).update(title="New title", version=2)
    backends()["keyword"].index([row])
    assert search("old") == []
    assert search("new") == ["New title"]
    Record.objects.filter(pk=row.pk).update(version=1)
    backends()["keyword"].index([row])
    assert KeywordEntry.objects.get().version == 2
    backends()["keyword"].remove([row.pk])
    assert search("new") == []


def test_what_the_user_may_not_see_is_not_found() -> None:
    indexed("Closed lake", access="closed")
    indexed("Withdrawn lake", is_deleted=False)
    Record.objects.filter(title="Withdrawn lake").update(is_deleted=True)
    assert search("lake") == []
