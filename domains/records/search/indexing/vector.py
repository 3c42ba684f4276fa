"""The vector index: embeddings, compared by their cosine.

After a change of RECORDS_MODEL, search uses the former model until the new one has indexed all
records, and both index new records. See `embedding_indexes`.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import F, FloatField, Func, QuerySet, Value
from django.db.models.functions import Cast

from tailrace.db.query import prepared, query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.domains.records.models import Record, VectorEntry
from tailrace.domains.records.search.embeddings.loaded import configured
from tailrace.domains.records.search.embeddings.model import EmbeddingModel, ModelUnusable, Vector
from tailrace.domains.records.search.indexing import embedding_indexes, pgvector
from tailrace.domains.records.search.indexing.backends import (
    LATE_FLUSH,
    IndexBackend,
    IndexUnavailable,
)

KEYWORDS = 50
"""Maximum number of a record's keywords that are embedded."""

_INDEX = f"""
WITH {LATE_FLUSH}
INSERT INTO tailrace_records_vectorentry AS entry
  (record_id, version, model, model_version, dimensions, embedding)
SELECT new.id, new.version, %(model)s, %(model_version)s, %(dimensions)s::int, new.embedding::real[]
FROM late_flush, unnest(%(ids)s::bigint[], %(versions)s::int[], %(embeddings)s::text[])
  AS new (id, version, embedding)
ORDER BY new.id
ON CONFLICT (record_id, model, model_version) DO UPDATE SET version = EXCLUDED.version,
  embedding = EXCLUDED.embedding
WHERE entry.version <= EXCLUDED.version
RETURNING record_id
"""
_INDEXED = """
SELECT record_id, version FROM tailrace_records_vectorentry
WHERE record_id = ANY(%(ids)s::bigint[]) AND model = %(model)s AND model_version = %(model_version)s
"""


class VectorType(FloatField):
    """The extension's type for vectors with this number of dimensions."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions

    def db_type(self, connection: Any) -> str:
        return f"vector({self.dimensions})"


class Distance(Func):
    """1 - cosine, by the extension's operator, which can use the HNSW index."""

    template = "(%(expressions)s)"
    arg_joiner = " <=> "
    output_field = FloatField()


class ExactDistance(Func):
    """1 - cosine of vectors of length 1, without the extension: all vectors are read."""

    # The product may be too small for `real`, which is an error in PostgreSQL.
    template = "(SELECT 1 - sum(a::float8 * b) FROM unnest(%(expressions)s::real[]) pair (a, b))"
    output_field = FloatField()


class VectorIndex(IndexBackend):
    """Meaning, compared by an embedding model"""

    name = "vector"
    title = "meaning"
    batch_size = 100

    def index(self, records: Sequence[Record]) -> None:
        embedding_indexes.register(configured().key, settings.RECORDS_MODEL)
        for model in embedding_indexes.models_to_index_by():
            _index(records, model)

    def remove(self, ids: Collection[int]) -> None:
        VectorEntry.objects.filter(record__in=ids).delete()

    def search(self, text: str, records: QuerySet[Record], limit: int) -> list[int]:
        try:
            model = embedding_indexes.model_to_search_by()
            [vector] = model.encode([text])
        except ModelUnusable as error:
            raise IndexUnavailable(str(error)) from None
        if not any(vector):
            return []
        cosines = _nearest(vector, model, records, limit)
        similarities = model.similarities(text, cosines, lambda: _texts(cosines))
        hits = [id for id, value in similarities.items() if value >= model.least_similarity]
        return sorted(hits, key=lambda id: -similarities[id])

    def method(self) -> str:
        try:
            model = embedding_indexes.model_to_search_by()
        except ModelUnusable:
            return ""
        return f"Search by meaning uses {model.method}."


def text_of(record: Record) -> str:
    """Return the text of a record to embed. Models ignore the end of long texts."""
    return ". ".join([record.title, ", ".join(record.keywords[:KEYWORDS]), record.description])


def _texts(ids: Iterable[int]) -> dict[int, str]:
    rows = Record.objects.only("title", "keywords", "description").in_bulk(list(ids))
    return {id: text_of(rows[id]) for id in ids if id in rows}


def _index(records: Sequence[Record], model: EmbeddingModel) -> None:
    key = {"model": model.key.name, "model_version": model.key.version}
    ids = number_array([record.pk for record in records])
    known = dict(prepared(_INDEXED, ids=ids, **key))
    new = [record for record in records if known.get(record.pk, 0) < record.version]
    if not new:
        return
    vectors = model.encode([text_of(record) for record in new])
    prepared(
        _INDEX,
        ids=number_array([record.pk for record in new]),
        versions=number_array([record.version for record in new]),
        embeddings=text_array([_literal(vector) for vector in vectors]),
        dimensions=model.key.dimensions,
        **key,
    )


def _literal(vector: Vector) -> str:
    return _format(len(vector)) % tuple(vector)


@cache
def _format(dimensions: int) -> str:
    """Return a format string for vectors. It writes numbers that are too small for `real` as 0."""
    return "{" + ",".join(["%.7f"] * dimensions) + "}"


def _nearest(
    vector: Vector, model: EmbeddingModel, records: QuerySet[Record], limit: int
) -> dict[int, float]:
    """Return the cosines of the records with the nearest vectors by id, the nearest first."""
    distance: Func
    if (installed := pgvector.version()) is None:
        distance = ExactDistance(F("embedding"), Value(_literal(vector)))
    else:
        _prepare_scan(installed, limit)
        kind = VectorType(model.key.dimensions)
        distance = Distance(
            Cast(F("embedding"), kind), Cast(Value(f"[{_literal(vector)[1:-1]}]"), kind)
        )
    rows = VectorEntry.objects.filter(
        model=model.key.name, model_version=model.key.version, record__in=records
    ).order_by(distance)
    return {id: 1 - value for id, value in rows.values_list("record_id", distance)[:limit]}


def _prepare_scan(installed: list[int], limit: int) -> None:
    """Configure index scans of this transaction, so that they return enough rows even if the user
    may not see most records."""
    query("SELECT set_config('hnsw.ef_search', %(count)s, true)", count=str(min(limit, 1000)))
    if installed >= [0, 8]:
        query("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")
