"""Each index costs every write, so none does what another does as well."""

import pytest

from tailrace.db.query import query

# Indexes are compared by their columns, their operator classes and their condition.
_DOUBLED = """
SELECT small.indexrelid::regclass::text, big.indexrelid::regclass::text
FROM pg_index small JOIN pg_index big USING (indrelid)
WHERE indrelid::regclass::text ~ '^tailrace_(jobs|events)_' AND small.indexrelid <> big.indexrelid
  AND NOT small.indisunique AND small.indexprs IS NULL
  AND starts_with(big.indkey::text || ' ', small.indkey::text || ' ')
  AND starts_with(big.indclass::text || ' ', small.indclass::text || ' ')
  AND pg_get_expr(big.indpred, indrelid) IS NOT DISTINCT FROM pg_get_expr(small.indpred, indrelid)
"""


@pytest.mark.django_db
def test_no_index_is_the_beginning_of_another() -> None:
    assert query(_DOUBLED) == []
