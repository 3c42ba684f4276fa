"""Delete the vectors of a former model in batches, in the order of record ids."""

from typing import NamedTuple

from tailrace.db.query import execute, query
from tailrace.domains.records.models import EmbeddingIndex

PIECE = 1000
"""Number of records whose vectors one statement deletes."""

_END = """
SELECT max(id) FROM (
  SELECT id FROM tailrace_records_record WHERE id > %(after)s ORDER BY id LIMIT %(piece)s) piece
"""
_DELETE = """
DELETE FROM tailrace_records_vectorentry WHERE record_id > %(after)s AND record_id <= %(until)s
  AND model = %(model)s AND model_version = %(model_version)s
"""


class Piece(NamedTuple):
    """The result of one statement."""

    deleted: int
    """Number of deleted vectors."""
    until: int
    """The id of the last record in the batch."""


def delete_piece(index: EmbeddingIndex, after: int) -> Piece | None:
    """Delete the vectors of the next records after the id `after`; None if no record follows."""
    [(until,)] = query(_END, after=after, piece=PIECE)
    if until is None:
        return None
    key = {"model": index.model, "model_version": index.model_version}
    return Piece(execute(_DELETE, after=after, until=until, **key), until)
