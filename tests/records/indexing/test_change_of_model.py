"""A change of the model: records are indexed by the new one side by side, without a gap."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from tailrace.db.query import execute, query
from tailrace.domains.records import invariants
from tailrace.domains.records.models import EmbeddingIndex, KeywordEntry, Record, VectorEntry
from tailrace.domains.records.models.visibility import visible_records
from tailrace.domains.records.search.indexing import embedding_indexes, pgvector, reindexing
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.invariant import Invariant
from tests.records.embeddings.folders import onnx_folder
from tests.records.kit import record

FIRST, SECOND = "Water levels of the river", "A cat sits on the mat"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(onnx_folder(tmp_path / "minilm"))


@pytest.fixture
def _records(db: None) -> None:
    backends()["vector"].index([record(FIRST), record(SECOND)])
    check(invariants.RecordsByConfiguredModel())


def check(invariant: Invariant) -> int:
    """Do what the sweeper does; return how many violations there were."""
    violations = list(invariant.find())
    if violations:
        invariant.repair(violations)
    return len(violations)


def search(text: str) -> list[str]:
    ids = backends()["vector"].search(text, visible_records(AnonymousUser()).current(), 10)
    return [Record.objects.get(pk=id).title for id in ids]


def used() -> str:
    return embedding_indexes.model_to_search_by().key.name


@pytest.mark.usefixtures("_records")
def test_search_changes_to_the_new_model_when_it_has_all_records(
    settings: Settings, folder: str, run_jobs: Callable[..., int], clock: object
) -> None:
    assert used() == "hashing:256"
    clock.step(600)
    settings.RECORDS_MODEL = folder
    invariant = invariants.RecordsByConfiguredModel()
    assert check(invariant)
    assert used() == "hashing:256"
    assert search("river water levels") == [FIRST]  # not by the new one: it has nothing
    backends()["vector"].index([record("Levels of the river bed")])  # meanwhile, in both
    assert set(search("river water levels")) == {FIRST, "Levels of the river bed"}
    assert not check(invariant)  # a job sees to it
    run_jobs(reindexing.HANDLER)
    assert check(invariant)
    assert used() == "minilm"
    assert search("a kitten rests on a rug") == [SECOND]
    assert not check(invariant)


@pytest.mark.usefixtures("_records")
def test_a_former_model_without_its_folder_leaves_search_to_the_new_one(
    settings: Settings, folder: str
) -> None:
    EmbeddingIndex.objects.update(location="/away")
    settings.RECORDS_MODEL = folder
    backends()["vector"].index([record("A dog")])
    assert used() == "minilm"
    assert search("puppy") == ["A dog"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_records")
def test_vectors_of_the_former_model_go_a_day_later(
    settings: Settings, run_jobs: Callable[..., int], clock: object
) -> None:
    clock.step(600)
    settings.RECORDS_MODEL = "hashing:64"
    removal, invariant = invariants.FormerVectorsAreDeleted(), invariants.RecordsByConfiguredModel()
    check(invariant)
    assert not check(removal)
    run_jobs()
    check(invariant)
    assert not check(removal)
    clock.step(25 * 3600)
    assert check(removal)
    run_jobs()
    assert set(VectorEntry.objects.values_list("model", flat=True)) == {"hashing:64"}
    assert [index.model for index in EmbeddingIndex.objects.all()] == ["hashing:64"]
    assert not check(removal)
    assert search("river water levels") == [FIRST]


@pytest.mark.usefixtures("_records")
def test_one_backend_is_indexed_again_without_the_other(run_jobs: Callable[..., int]) -> None:
    Record.objects.filter(title=SECOND).update(is_deleted=True)
    execute(
        "DELETE FROM tailrace_records_vectorentry WHERE record_id IN"
        " (SELECT id FROM tailrace_records_record WHERE NOT is_deleted)"
    )
    assert reindexing.reindex("vector") == 1
    assert reindexing.reindex("vector") == 0  # it waits for its job already
    run_jobs()
    assert VectorEntry.objects.get().record.title == FIRST
    assert KeywordEntry.objects.count() == 0
    assert reindexing.reindex("keyword") == 1
    run_jobs()
    assert KeywordEntry.objects.get().record.title == FIRST
    assert Job.objects.filter(handler=reindexing.HANDLER, state="completed").count() == 2


def test_pieces_cover_every_record(
    db: None, monkeypatch: pytest.MonkeyPatch, run_jobs: Callable[..., int]
) -> None:
    monkeypatch.setattr(reindexing, "PIECE", 3)
    monkeypatch.setattr(reindexing, "BATCH", 2)
    rows = [record(f"Series {number}") for number in range(10)]
    assert reindexing.reindex("keyword") == 4
    run_jobs()
    assert set(KeywordEntry.objects.values_list("pk", flat=True)) == {row.pk for row in rows}


@pytest.fixture
def _pgvector(transactional_db: None) -> Iterator[None]:
    if pgvector.version() is None:
        pytest.skip("this server does not have the extension vector")
    yield
    for index in EmbeddingIndex.objects.all():
        pgvector.drop_index(index)


@pytest.mark.usefixtures("_pgvector")
def test_many_vectors_get_an_index_that_answers_a_search(
    run_jobs: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    backends()["vector"].index([record(FIRST), record(SECOND)])
    invariant = invariants.VectorsHaveTheirIndex()
    assert not check(invariant)  # there are few
    monkeypatch.setattr(pgvector, "INDEXED_FROM", 2)
    assert check(invariant)
    run_jobs()
    assert not check(invariant)
    for way in ("enable_seqscan", "enable_sort"):
        execute(f"SET {way} = off")
    try:
        with CaptureQueriesContext(connection) as context:
            assert search("river water levels") == [FIRST]
        [statement] = [each["sql"] for each in context if "<=>" in each["sql"]]
        assert "records_vector_entry_hnsw" in str(query("EXPLAIN " + statement.replace("%", "%%")))
    finally:
        execute("RESET ALL")
