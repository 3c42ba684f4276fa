"""Delete the vectors of a former model in pieces, along the ids of records."""

from typing import NamedTuple

from tailrace.db.query import execute, query
from tailrace.domains.records.models import EmbeddingIndex

PIECE = 1000
"""Records whose vectors one statement deletes."""

_END = """
SELECT max(id) FROM (
  SELECT id FROM tailrace_records_record WHERE id > %(after)s ORDER BY id LIMIT %(piece)s) piece
"""
_DELETE = """
DELETE FROM tailrace_records_vectorentry WHERE record_id > %(after)s AND record_id <= %(until)s
  AND model = %(model)s AND model_version = %(model_version)s
"""


class Piece(NamedTuple):
    """What one statement did."""

    deleted: int
    until: int
    """The last id of a record that it looked at."""


def delete_piece(index: EmbeddingIndex, after: int) -> Piece | None:
    """Delete the vectors of the records that follow this id; None: there are none."""
    [(until,)] = query(_END, after=after, piece=PIECE)
    if until is None:
        return None
    key = {"model": index.model, "model_version": index.model_version}
    return Piece(execute(_DELETE, after=after, until=until, **key), until)
