"""The invariants of embedding models and their vectors."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from tailrace.domains.records.search.embeddings.loaded import configured_key
from tailrace.domains.records.search.embeddings.model import ModelUnusable
from tailrace.domains.records.search.indexing import embedding_indexes, pgvector, reindexing
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.maintenance.invariant import Invariant

VECTOR = "vector"


class RecordsByConfiguredModel(Invariant):
    """The model in RECORDS_MODEL has indexed all records, and search uses it.

    Repaired: jobs index the records again; when the model has indexed all, search uses it.
    """

    name = "records.by_configured_model"
    advice = "jobs of records.reindex index the records; until then search uses the former model"
    every = 60
    limit = 1

    def find(self) -> Sequence[Any]:
        """Return RECORDS_MODEL, unless the model is complete or jobs are indexing records again."""
        try:
            key = configured_key()
        except ModelUnusable:  # `manage.py check` reports this
            return []
        index = embedding_indexes.index_of(key)
        if index is None and not embedding_indexes.lacking(key, limit=1):
            return []  # there are no records
        if (index and index.completed_at) or reindexing.is_running(VECTOR):
            return []
        return [settings.RECORDS_MODEL]

    def repair(self, violations: Sequence[Any]) -> int:
        key = configured_key()
        embedding_indexes.register(key, settings.RECORDS_MODEL)
        if embedding_indexes.lacking(key, limit=1):
            return reindexing.reindex(VECTOR)
        index = embedding_indexes.index_of(key)
        if index is not None:
            embedding_indexes.complete(index)
        return 1


class VectorsHaveTheirIndex(Invariant):
    """Each model with many vectors has an HNSW index, if the extension pgvector is installed.

    Repaired: a job builds the index.
    """

    name = "records.vectors_have_their_index"
    advice = "a job builds the index; until then search by meaning is slower"
    every = 60

    def find(self) -> Sequence[Any]:
        return [index.pk for index in pgvector.without_index()]

    def repair(self, violations: Sequence[Any]) -> int:
        return _enqueue("records.build_vector_index", violations)


class FormerVectorsAreDeleted(Invariant):
    """Vectors of a former model are deleted a day after the change of models.

    Repaired: a job deletes the vectors.
    """

    name = "records.former_vectors"
    advice = "a job deletes the vectors"
    every = 600

    def find(self) -> Sequence[Any]:
        try:
            return [index.pk for index in embedding_indexes.former()]
        except ModelUnusable:
            return []

    def repair(self, violations: Sequence[Any]) -> int:
        return _enqueue("records.remove_vectors", violations)


def _enqueue(handler: str, indexes: Sequence[int]) -> int:
    return enqueue_many(
        handler, [{"payload": {"index": pk}, "unique_key": str(pk)} for pk in indexes]
    )
