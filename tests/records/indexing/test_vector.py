"""The index of meanings: vectors by model and version, with pgvector and without it."""

from collections.abc import Callable
from random import Random

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from tailrace.db.query import execute
from tailrace.domains.records.models import EmbeddingIndex, Record, VectorEntry
from tailrace.domains.records.models.visibility import visible_records
from tailrace.domains.records.search.indexing import pgvector
from tailrace.domains.records.search.indexing.backends import backends
from tests.records.embeddings.folders import onnx_folder
from tests.records.kit import record

pytestmark = pytest.mark.django_db
TITLES = ["Water levels of the river", "Baroque church music", "Level of lakes and rivers"]


def indexed(*titles: str) -> None:
    backends()["vector"].index([record(title) for title in titles])


def search(text: str, limit: int = 10) -> list[str]:
    records = visible_records(AnonymousUser()).current()
    ids = backends()["vector"].search(text, records, limit)
    titles = dict(Record.objects.values_list("pk", "title"))
    return [titles[id] for id in ids]


@pytest.fixture(params=["with pgvector", "without it"])
def server(request: pytest.FixtureRequest) -> None:
    if request.param == "without it":
        execute("DROP EXTENSION IF EXISTS vector")
    elif pgvector.version() is None:
        pytest.skip("this server does not have the extension vector")


@pytest.mark.usefixtures("server")
def test_the_nearest_records_come_first() -> None:
    indexed(*TITLES)
    assert search("water level of a river") == [TITLES[0], TITLES[2]]
    assert search("water level of a river", limit=1) == [TITLES[0]]
    assert search("...") == []


@pytest.mark.usefixtures("server")
def test_only_what_the_user_may_see_is_searched() -> None:
    indexed(*TITLES)
    Record.objects.filter(title=TITLES[0]).update(access="closed")
    assert search(TITLES[0]) == [TITLES[2]]


WORDS = """
snow depth wind valley glacier river measurement station winter summer village forest sample
pressure energy species habitat protein cell language grammar archive letter history economy trade
climate rainfall soil mineral galaxy spectrum orbit particle field
""".split()
IN_NO_RECORD = "coffee compared unknown traceback overlap nginx colours digest".split()


@pytest.mark.usefixtures("server")
def test_a_word_that_no_record_has_finds_nothing() -> None:
    random = Random(1)
    indexed(*(f"{' '.join(random.choices(WORDS, k=25))} {number}" for number in range(400)))
    assert [word for word in IN_NO_RECORD if search(word)] == []
    assert len(search("glaciers", limit=50)) > 10, "another form of a word is found"


def test_the_method_names_the_model(settings: Settings) -> None:
    assert "the model hashing:256, which compares words" in backends()["vector"].method()
    settings.RECORDS_MODEL = "/no/such/folder"
    assert backends()["vector"].method() == ""
    assert backends()["keyword"].method() == ""


def test_a_batch_takes_few_statements(django_assert_max_num_queries: Callable) -> None:
    rows = [record(f"Series {number}") for number in range(100)]
    with django_assert_max_num_queries(5):
        backends()["vector"].index(rows)
    assert VectorEntry.objects.count() == 100


def test_what_is_indexed_already_is_not_embedded_again() -> None:
    rows = [record(title) for title in TITLES]
    backends()["vector"].index(rows)
    with CaptureQueriesContext(connection) as context:
        backends()["vector"].index(rows)
    assert not [
        each for each in context if "INSERT INTO tailrace_records_vectorentry" in each["sql"]
    ]


def test_model_and_version_stand_with_each_vector(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings.RECORDS_MODEL = str(onnx_folder(tmp_path_factory.mktemp("model") / "minilm"))
    indexed("The cat sits on the mat", "Quarterly revenue of banks")
    assert search("a kitten rests on a rug") == ["The cat sits on the mat"]
    index = EmbeddingIndex.objects.get()
    assert (index.model, index.dimensions) == ("minilm", 384)
    stored = VectorEntry.objects.values_list("model", "model_version", "dimensions").distinct()
    assert list(stored) == [("minilm", index.model_version, 384)]
    assert {len(row.embedding) for row in VectorEntry.objects.all()} == {384}
