"""PostgreSQL's extension vector, where the server has it: its operators and its index (HNSW).

Vectors are stored as arrays, so that a server without the extension has the same tables; the index
is on their cast. One model's vectors have one index, which no other model's vectors are in.
"""

from django.db import connection
from psycopg import sql

from tailrace.db.query import query
from tailrace.domains.records.models import EmbeddingIndex

INDEXED_FROM = 50_000
"""Vectors of a model: fewer are searched without an index in 0.2 s, and stored faster."""

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
    """Return the version of the extension in this database; None if it is not there."""
    rows = query(_VERSION)
    return rows[0][0] if rows else None


def name_of(index: EmbeddingIndex) -> str:
    """Return the name of the HNSW index of a model's vectors."""
    return f"records_vector_entry_hnsw_{index.pk}"


def without_index() -> list[EmbeddingIndex]:
    """Return the models that have so many vectors that an index is wanted, and none."""
    if version() is None:
        return []
    return [
        index
        for index in EmbeddingIndex.objects.order_by("pk")
        if not _is_valid(index) and _has_many(index)
    ]


def build_index(index: EmbeddingIndex) -> None:
    """Create the HNSW index while others read and write. It takes minutes for 100,000 vectors."""
    if _is_valid(index):
        return
    drop_index(index)  # what an interrupted build has left
    with connection.cursor() as cursor:
        cursor.execute(statement_of(index))


def statement_of(index: EmbeddingIndex) -> sql.Composed:
    """Return the statement that creates the index of a model's vectors."""
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
    """Drop the index of a model's vectors, if there is one."""
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
