"""The invariants of depositions, records, their indexes, and embedding models."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat

from tailrace.db.query import database_now
from tailrace.domains.records.depositions.events import publish_about
from tailrace.domains.records.event_types import SOURCE, DepositionSubmitted
from tailrace.domains.records.models import Deposition, KeywordEntry, Record, VectorEntry
from tailrace.domains.records.search.embeddings.loaded import configured_key
from tailrace.domains.records.search.embeddings.model import ModelUnusable
from tailrace.domains.records.search.indexing import embedding_indexes, pgvector, reindexing
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.events.models import Event
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.runtime.invariant import Invariant

SETTLED = timedelta(minutes=10)
"""The age from which on rows should have been processed."""
RECENT = timedelta(days=1)
VECTOR = "vector"


class DepositionsHaveAnEvent(Invariant):
    """Each submitted deposition has an event, whose jobs process the deposition.

    Repaired: the event is published.
    """

    name = "records.depositions_have_an_event"
    every = 300

    def find(self) -> Sequence[Any]:
        until = database_now() - SETTLED
        rows = Deposition.objects.unfinished().filter(state="submitted", submitted_at__lt=until)
        return list(_without_event(rows).values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        publish_about(DepositionSubmitted, violations)
        return len(violations)


class WithdrawnAreNotIndexed(Invariant):
    """Withdrawn records are in no index.

    Repaired: the records are removed from all indexes.
    """

    name = "records.withdrawn_are_not_indexed"
    every = 300

    def find(self) -> Sequence[Any]:
        now = database_now()
        rows = Record.objects.filter(is_deleted=True, published_at__lt=now - SETTLED)
        recent = rows.filter(published_at__gt=now - RECENT).order_by("-published_at", "-pk")
        indexed = recent.filter(Exists(_keyword_entries()) | Exists(_vector_entries()))
        return list(indexed.values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        for backend in backends().values():
            backend.remove(violations)
        return len(violations)


class PublishedAreIndexed(Invariant):
    """Published records are in the keyword index and the vector index. The check reads all records,
    so only `fsck` runs it.

    Repaired: the records are indexed.
    """

    name = "records.published_are_indexed"
    every = None

    def find(self) -> Sequence[Any]:
        rows = Record.objects.current().filter(published_at__lt=database_now() - SETTLED)
        unindexed = rows.filter(~Exists(_keyword_entries()) | ~Exists(_vector_entries()))
        return list(unindexed.order_by("pk").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        records = list(Record.objects.current().filter(pk__in=violations))
        for backend in backends().values():
            backend.index(records)
        return len(records)


def _without_event(rows: QuerySet[Deposition]) -> QuerySet[Deposition]:
    number = Cast(OuterRef("pk"), TextField())
    name = Concat(Value("deposition/"), number, Value("/submitted"), output_field=TextField())
    return rows.filter(~Exists(Event.objects.filter(source=SOURCE, source_id=name)))


def _keyword_entries() -> QuerySet[KeywordEntry]:
    return KeywordEntry.objects.filter(record=OuterRef("pk"))


def _vector_entries() -> QuerySet[VectorEntry]:
    return VectorEntry.objects.filter(record=OuterRef("pk"))


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
        if index is None and not embedding_indexes.records_without_vector(key, limit=1):
            return []  # there are no records
        if (index and index.completed_at) or reindexing.is_running(VECTOR):
            return []
        return [settings.RECORDS_MODEL]

    def repair(self, violations: Sequence[Any]) -> int:
        key = configured_key()
        embedding_indexes.register(key, settings.RECORDS_MODEL)
        if embedding_indexes.records_without_vector(key, limit=1):
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
        return [index.pk for index in pgvector.models_without_index()]

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
