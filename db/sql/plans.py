"""SQL conditions that force the planner to one plan. A prepared statement may be planned while its
table is empty, when reading a whole index seems as cheap as looking up one row. The plan stays in
use when the table has grown."""


def probe(column: str, value: str) -> str:
    """Return SQL for `column = value` that the planner can only answer by an index lookup.

    It can use an array of one value neither for a hash join nor for a merge join.
    """
    return f"{column} = ANY(ARRAY[{value}])"


def unindexed(column: str) -> str:
    """Return SQL for a text column that keeps the planner from using any index on it."""
    return f"({column} || '')"
