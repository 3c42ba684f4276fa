"""HNSW indexes of PostgreSQL's extension vector, if the server has the extension.

Vectors are stored as arrays, so that servers without the extension have the same tables; the index
is on their cast to `vector`. Each model has an index of its own.
"""

from django.db import connection
from psycopg import sql

from tailrace.db.query import query
from tailrace.domains.records.models import EmbeddingIndex

INDEXED_FROM = 50_000
"""The number of a model's vectors from which on an index is built. A search in fewer vectors takes
at most 0.2 s without an index, and they are stored faster."""

_VERSION = "SELECT string_to_array(extversion, '.')::int[] FROM pg_extension WHERE extname='vector'"
_COUNT = """
SELECT count(*) FROM (
  SELECT FROM tailrace_records_vectorentry WHERE model = %(model)s
    AND model_version = %(model_version)s
  LIMIT %(limit)s) vectors
"""
_IS_VALID = """
SELECT indisvalid FROM pg_index
WHERE indexrelid = to_regclass(%(name)s) AND indrelid = 'tailrace_records_vectorentry'::regclass
"""


def version() -> list[int] | None:
    """Return the version of the extension in this database, or None if it is not installed."""
    rows = query(_VERSION)
    return rows[0][0] if rows else None


def name_of(index: EmbeddingIndex) -> str:
    return f"records_vector_entry_hnsw_{index.pk}"


def models_without_index() -> list[EmbeddingIndex]:
    """Return the models with at least INDEXED_FROM vectors and without a valid index."""
    if version() is None:
        return []
    return [
        index
        for index in EmbeddingIndex.objects.order_by("pk")
        if not _is_valid(index) and _has_many(index)
    ]


def build_index(index: EmbeddingIndex) -> None:
    """Create the HNSW index without blocking writes. It takes minutes for 100,000 vectors."""
    if _is_valid(index):
        return
    drop_index(index)  # an interrupted build may have left an invalid index
    with connection.cursor() as cursor:
        cursor.execute(statement_of(index))


def statement_of(index: EmbeddingIndex) -> sql.Composed:
    return sql.SQL(
        "CREATE INDEX CONCURRENTLY {name} ON tailrace_records_vectorentry"
        " USING hnsw ((embedding::vector({dimensions})) vector_cosine_ops)"
        " WHERE model = {model} AND model_version = {model_version}"
    ).format(
        name=sql.Identifier(name_of(index)),
        dimensions=sql.Literal(index.dimensions),
        model=sql.Literal(index.model),
        model_version=sql.Literal(index.model_version),
    )


def drop_index(index: EmbeddingIndex) -> None:
    """Drop the index of a model's vectors, if it exists."""
    name = sql.Identifier(name_of(index))
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))


def _is_valid(index: EmbeddingIndex) -> bool:
    rows = query(_IS_VALID, name=name_of(index))
    return bool(rows and rows[0][0])


def _has_many(index: EmbeddingIndex) -> bool:
    [(count,)] = query(
        _COUNT, model=index.model, model_version=index.model_version, limit=INDEXED_FROM
    )
    return bool(count == INDEXED_FROM)
