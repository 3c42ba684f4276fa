"""Array literals of PostgreSQL, for statements that take rows as one array per column.

If the driver made them, it would check the type of each element: half the time of a bulk insert.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any


def text_array(values: Iterable[Any]) -> str:
    """Return the literal of an array of texts or times; None becomes NULL."""
    return "{" + ",".join(["NULL" if v is None else _quoted(str(v)) for v in values]) + "}"


def number_array(values: Iterable[float | None]) -> str:
    """Return the literal of an array of numbers; None becomes NULL."""
    return "{" + ",".join(["NULL" if v is None else str(v) for v in values]) + "}"


def arrays(rows: Sequence[Any], columns: Iterable[str], numbers: Collection[str]) -> dict[str, str]:
    """Return an array literal for each column of the rows; columns in `numbers` hold numbers."""
    return {
        name: (number_array if name in numbers else text_array)([getattr(r, name) for r in rows])
        for name in columns
    }


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
