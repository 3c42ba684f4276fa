"""Ids of rows: read them from text, and find the first id since a time."""

from datetime import datetime, timedelta

from tailrace.db.query import query

MARGIN = timedelta(minutes=10)
"""Ids are in the order of time, except in overlapping transactions, which overlap for less than
this."""


def row_id(text: str) -> int | None:
    """Return the id in this text, or None if it is not a valid id (a bigint of 0 or more)."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 19
    return int(text) if is_number and int(text) < 2**63 else None


# A binary search along the primary key: about thirty probes, even in a large table.
_FIRST_SINCE = """
WITH RECURSIVE halves (low, high) AS (
  SELECT min(id), max(id) + 1 FROM {table}
  UNION ALL
  SELECT CASE WHEN early THEN middle + 1 ELSE low END, CASE WHEN early THEN high ELSE middle END
  FROM (SELECT low, high, (low + high) / 2 AS middle FROM halves WHERE low < high) h,
    LATERAL (SELECT coalesce((SELECT {column} < %(at)s FROM {table}
      WHERE id >= middle ORDER BY id LIMIT 1), false) AS early) probe
)
SELECT low FROM halves WHERE low >= high
"""


def first_id_since(table: str, column: str, at: datetime) -> int:
    """Return the lowest id of the table's rows whose time `column` is `at` or later, if ids are in
    the order of that time: see MARGIN. If there is no such row, return the highest id plus one; for
    an empty table 0."""
    rows = query(_FIRST_SINCE.format(table=table, column=column), at=at)
    return (rows and rows[0][0]) or 0
