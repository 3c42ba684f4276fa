"""Conditions that leave the planner one way to answer them, whatever the statistics say.

The plan of a prepared statement may have been made while its table was empty. Then reading a whole
index seems as cheap as looking one row up, and the plan is kept when the table has grown.
"""


def probe(column: str, value: str) -> str:
    """Return SQL for `column = value` that is only answered by looking each value up in an index:
    an array of one value can be neither hashed nor merged."""
    return f"{column} = ANY(ARRAY[{value}])"


def unindexed(column: str) -> str:
    """Return SQL for a text column in which no index, and no index's condition, is recognised."""
    return f"({column} || '')"
