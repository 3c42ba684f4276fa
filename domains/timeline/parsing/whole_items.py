"""Decode many items of a JSON list in one call, twice as fast as one by one.

The decoder is that of pydantic. What it accepts it decodes as `json` does; it refuses more: single
surrogates, depth above 200, bytes that are no UTF-8. What it refuses is left to `json`.
"""

import re
from functools import partial
from typing import Any

from pydantic_core import from_json

_BEFORE = re.compile(r"[}\]][ \t\r\n]*,[ \t\r\n]*\Z")
_BEGINNING = re.compile(r'\{[ \t\r\n]*"[^"\\]{0,100}"|\[')
_LONGEST_SPACE = 200
_MOST_MISSES = 4
"""After so many refused texts in a row, items are decoded one by one."""

decode = partial(from_json, cache_strings="keys")
"""Decode a text or bytes. Raises ValueError."""


class WholeItems:
    """Find and decode the items of one list that are wholly in a text."""

    def __init__(self) -> None:
        self._separator = ""
        """The end of an item, a comma, and how the next one begins, as they stand in the file."""
        self._gap = 0
        """Characters of it before the next item."""
        self._misses = 0

    def learn(self, text: str, start: int) -> None:
        """Take the separator from before the item that begins at `start`, which is not the first
        of its list."""
        before = _BEFORE.search(text[max(0, start - _LONGEST_SPACE) : start])
        beginning = _BEGINNING.match(text, start)
        if before and beginning and self._misses < _MOST_MISSES:
            self._separator, self._gap = before[0] + beginning[0], len(before[0])

    def decode(self, text: str, start: int) -> tuple[list[Any], int] | None:
        """Return the items of the text from `start`, where one begins, and where the next begins;
        None if they have to be decoded one by one.

        A separator within an item does no harm: what is cut there is no valid JSON.
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
