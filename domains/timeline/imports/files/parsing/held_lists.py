"""Lists that are kept compressed in memory until the object that contains them was read."""

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json, to_json

from tailrace.domains.timeline.imports.files.parsing.file_errors import LimitExceeded
from tailrace.domains.timeline.imports.files.parsing.json_stream import Items

MOST_VALUES = 1_500_000
"""Maximum values of a list: positions of a line, or their times."""
MOST_BYTES = 40_000_000
"""Maximum compressed bytes. A point of a line, its position and time, takes 20 to 25 bytes."""


class HeldLists:
    """Lists by their names. Each list is added in pieces."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[bytes]] = defaultdict(list)
        self._counts: Counter[str] = Counter()
        self._bytes = 0

    def add(self, items: Items) -> None:
        """Add the next items of a list. Raises LimitExceeded."""
        if not items.values:
            return
        packed = zlib.compress(_encoded(items.values), 1)
        self._bytes += len(packed)
        self._counts[items.key] += sum(map(_count, items.values))
        if self._counts[items.key] > MOST_VALUES or self._bytes > MOST_BYTES:
            message = f"A line has too many points (the limit is {MOST_VALUES:,}): split it up"
            raise LimitExceeded(message, **items.stream.place(items.starts[0]))
        self._pieces[items.key].append(packed)

    def first_of(self, *names: str) -> Iterator[Any]:
        """Yield the values of the first of these lists that is not empty."""
        name = next((name for name in names if name in self._pieces), "")
        for packed in self._pieces.get(name, ()):
            yield from _decoded(zlib.decompress(packed))

    def clear(self) -> None:
        self._pieces.clear()
        self._counts.clear()
        self._bytes = 0


def _count(value: Any) -> int:
    """Return the number of positions of a part of a line of several parts; 1 for other values."""
    is_line = isinstance(value, list) and value and isinstance(value[0], list)
    return len(value) if is_line else 1


def _encoded(values: list[Any]) -> bytes:
    try:
        return to_json(values)
    except ValueError:  # single surrogates, or nested too deep for it
        return json.dumps(values).encode()


def _decoded(packed: bytes) -> list[Any]:
    values: list[Any]
    try:
        values = from_json(packed)
    except ValueError:
        values = json.loads(packed)
    return values
