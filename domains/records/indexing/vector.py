"""The index of meanings: embeddings, compared by their cosine.

Search uses the model that has all records. Records are indexed by it and by the configured one,
until that has all records, too. See `embedding_indexes` for the change from one to the other.
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import F, FloatField, Func, QuerySet, Value
from django.db.models.functions import Cast

from tailrace.db import prepared
from tailrace.db.arrays import number_array, text_array
from tailrace.db.query import execute, query
from tailrace.domains.records.embeddings.loaded import configured
from tailrace.domains.records.embeddings.model import EmbeddingModel, ModelUnusable, Vector
from tailrace.domains.records.indexing import embedding_indexes, pgvector
from tailrace.domains.records.indexing.backends import LATE_FLUSH, IndexBackend, IndexUnavailable
from tailrace.domains.records.models import Record, VectorEntry

KEYWORDS = 50
"""Keywords of a record that are embedded."""

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
    """The extension's type for vectors of so many dimensions."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions

    def db_type(self, connection: Any) -> str:
        return f"vector({self.dimensions})"


class Distance(Func):
    """1 - cosine, by the extension's operator, which its index answers."""

    template = "(%(expressions)s)"
    arg_joiner = " <=> "
    output_field = FloatField()


class ExactDistance(Func):
    """1 - cosine of vectors of length 1, without the extension: each vector is read."""

    # PostgreSQL refuses a product that is too small for `real`.
    template = "(SELECT 1 - sum(a::float8 * b) FROM unnest(%(expressions)s::real[]) pair (a, b))"
    output_field = FloatField()


class VectorIndex(IndexBackend):
    """Meanings, as an embedding model compares them"""

    name = "vector"
    title = "meaning"
    batch_size = 100

    def index(self, records: Sequence[Record]) -> None:
        embedding_indexes.register(configured().key, settings.RECORDS_MODEL)
        for model in embedding_indexes.models_to_index_by():
            _index(records, model)

    def remove(self, ids: Collection[int]) -> None:
        execute(
            "DELETE FROM tailrace_records_vectorentry WHERE record_id = ANY(%(ids)s)", ids=list(ids)
        )

    def search(self, text: str, records: QuerySet[Record], limit: int) -> list[int]:
        try:
            model = embedding_indexes.model_to_search_by()
            [vector] = model.encode([text])
        except ModelUnusable as error:
            raise IndexUnavailable(str(error)) from None
        if not any(vector):
            return []
        return _nearest(vector, model, records, limit)


def text_of(record: Record) -> str:
    """Return what is embedded of a record; models cut off its end."""
    return ". ".join([record.title, ", ".join(record.keywords[:KEYWORDS]), record.description])


def _index(records: Sequence[Record], model: EmbeddingModel) -> None:
    key = {"model": model.key.name, "model_version": model.key.version}
    ids = number_array([record.pk for record in records])
    known = dict(prepared.query(_INDEXED, ids=ids, **key))
    new = [record for record in records if known.get(record.pk, 0) < record.version]
    if not new:
        return
    vectors = model.encode([text_of(record) for record in new])
    prepared.query(
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
    """Of numbers up to 1; very small ones become 0, since `real` cannot hold them."""
    return "{" + ",".join(["%.7f"] * dimensions) + "}"


def _nearest(
    vector: Vector, model: EmbeddingModel, records: QuerySet[Record], limit: int
) -> list[int]:
    """Return the ids of the records whose vectors are nearest, the nearest first."""
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
    nearest = rows.values_list("record_id", distance)[:limit]
    return [id for id, value in nearest if 1 - value >= model.least_similarity]


def _prepare_scan(installed: list[int], limit: int) -> None:
    """Let the index return enough rows, also where most are of records that the user may not see;
    until the end of the transaction."""
    query("SELECT set_config('hnsw.ef_search', %(count)s, true)", count=str(min(limit, 1000)))
    if installed >= [0, 8]:
        query("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")
