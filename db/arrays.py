"""Array literals of PostgreSQL, for statements that take many rows as columns.

The driver would check the type of each element first, which costs a bulk insert half its time.
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
    """Return the literal of each column of the rows; those in `numbers` are arrays of numbers."""
    return {
        name: (number_array if name in numbers else text_array)([getattr(r, name) for r in rows])
        for name in columns
    }


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
