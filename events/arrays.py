"""arrays: PostgreSQL's array literals, for statements that take many rows as columns.

The driver's own way looks at each element's type first, which costs a bulk insert half its time.
"""

from collections.abc import Iterable
from typing import Any


def array(values: Iterable[Any]) -> str:
    """Return the literal of an array of texts or times; None becomes NULL."""
    return "{" + ",".join(["NULL" if v is None else _quoted(str(v)) for v in values]) + "}"


def numbers(values: Iterable[float | None]) -> str:
    """Return the literal of an array of numbers; None becomes NULL."""
    return "{" + ",".join(["NULL" if v is None else str(v) for v in values]) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
