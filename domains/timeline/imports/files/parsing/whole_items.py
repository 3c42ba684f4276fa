"""Decode many items of a JSON list in one call, twice as fast as one by one.

The decoder is pydantic's. It returns the same values as `json`, but rejects more texts: single
surrogates, nesting deeper than 200, bytes that are not UTF-8. Rejected texts are left to `json`.
"""

import re
from functools import partial
from typing import Any

from pydantic_core import from_json

_BEFORE = re.compile(r"[}\]][ \t\r\n]*,[ \t\r\n]*\Z")
_BEGINNING = re.compile(r'\{[ \t\r\n]*"[^"\\]{0,100}"|\[')
_LONGEST_SPACE = 200
_MOST_MISSES = 4
"""After this number of rejected texts in a row, items are decoded one by one."""

decode = partial(from_json, cache_strings="keys")
"""Decode a string or bytes. Raises ValueError."""


class WholeItems:
    """Finds and decodes the complete items of one list in a text."""

    def __init__(self) -> None:
        self._separator = ""
        """The exact text between items: the end of an item, a comma, the beginning of the next."""
        self._gap = 0
        """Characters of the separator before the next item."""
        self._misses = 0

    def learn(self, text: str, start: int) -> None:
        """Learn the separator before the item that begins at `start`. The item must not be the
        first of its list."""
        before = _BEFORE.search(text[max(0, start - _LONGEST_SPACE) : start])
        beginning = _BEGINNING.match(text, start)
        if before and beginning and self._misses < _MOST_MISSES:
            self._separator, self._gap = before[0] + beginning[0], len(before[0])

    def decode(self, text: str, start: int) -> tuple[list[Any], int] | None:
        """Return the complete items from `start`, and the position of the next item; None if they
        have to be decoded one by one.

        An item must begin at `start`. If the separator also occurs within an item, the text that is
        cut there is not valid JSON, and None is returned.
        """
        end = text.rfind(self._separator, start) if self._separator else -1
        if end < 0:
            return None
        try:
            values = decode(f"[{text[start : end + 1]}]")
        except ValueError:
            self._separator = ""
            self._misses += 1
            return None
        self._misses = 0
        return values, end + self._gap
