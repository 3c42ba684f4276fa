"""Split a page in JSON into its entries while it arrives, with a size limit for each entry.

An entry beyond the limit is read without keeping all of it, and its strings are cut. Streaming JSON
libraries keep each string in memory as a whole.
"""

import json
import re
from codecs import getincrementaldecoder
from typing import Any

from tailrace.domains.builds.event_types.cut_values import CUT
from tailrace.domains.builds.sources.log_page import BadPage, IncompletePage

MAX_TEXT = 1000
"""Maximum number of characters that are kept of each string of an entry that is too big."""
MAX_REST = 50_000
"""Maximum number of characters that are kept of such an entry in total."""
MAX_NAMES = 20
ELLIPSIS = "..."
LIST = "notification"
_NOT_JSON = "data that is not a page in JSON"
_NOT_SPACE = re.compile(r"[^ \t\r\n]")
_DELIMITER = re.compile(r"[ \t\r\n,\]}]")
"""The end of a word outside of strings. White space is the same as in _NOT_SPACE: else a word could
end where it begins, and the parser would read it again without end."""
_OUTSIDE: Any = re.compile(r'[^"{}\[\]]*+["{}\[\]]?')
"""Text outside of strings, up to and with the next quote or bracket."""
_STRING: Any = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
"""Whole characters of a string, up to its closing quote."""
_BEGINNING: Any = re.compile(rf"(?:[^\\]|\\u.{{4}}|\\[^u]){{0,{MAX_TEXT}}}", re.DOTALL)
"""The first MAX_TEXT characters of a string."""
_decode = json.JSONDecoder().raw_decode


class _MoreNeeded(Exception):
    """The next step needs more of the document."""


class JsonPage:
    """Collects `entries`, the complete entries of the page, and `members`, the other members of the
    page's object."""

    def __init__(self, max_entry: int) -> None:
        self.entries: list[Any] = []
        self.members: dict[str, Any] = {}
        self._max_entry = max_entry
        self._text = getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._position = 0
        self._step = self._begin
        self._long: LongValue | None = None
        self._retry_at = 0
        self._closing = False

    def feed(self, chunk: bytes) -> None:
        """Parse the next piece of the document; raise BadPage if the document is not a page."""
        self._rest = self._rest[self._position :] + self._text.decode(chunk)
        self._position = 0
        if len(self._rest) >= self._retry_at:
            self._read()

    def finish(self) -> None:
        """Finish parsing at the end of the document; raise IncompletePage if it is incomplete."""
        self._closing = True
        self._rest += self._text.decode(b"", True)
        self._read()
        if self._step != self._end:
            raise IncompletePage("an incomplete or unreadable page in JSON")

    def _read(self) -> None:
        self._retry_at = 0
        try:
            while self._step != self._end or self._position < len(self._rest):
                self._step()
        except _MoreNeeded:
            pass

    # --- the steps: each reads a piece and sets the next step, or raises _MoreNeeded ---

    def _begin(self) -> None:
        first = self._next_character()
        if first != "{":
            is_json = first in '["'
            raise BadPage("an invalid page: not a JSON object" if is_json else _NOT_JSON)
        self._position += 1
        self._step = self._member

    def _member(self) -> None:
        if self._next_character() == "}":
            self._position += 1
            self._step = self._end
            return
        self._skip(",")
        key, after = self._complete_value()
        after = self._after_space(after)
        if after >= len(self._rest):
            raise _MoreNeeded
        if not isinstance(key, str) or self._rest[after] != ":":
            raise BadPage(_NOT_JSON)
        self._position = after + 1
        self._key, self._step = key, self._list if key == LIST else self._value

    def _list(self) -> None:
        if self._next_character() != "[":
            raise BadPage("an invalid page: `notification` is not a list")
        self._position += 1
        self._step = self._entry

    def _value(self) -> None:
        value, self._position = self._complete_value()
        self.members[self._key] = value
        self._step = self._member

    def _entry(self) -> None:
        if self._long:
            self._finish_long(self._long)
            return
        if self._next_character() == "]":
            self._position += 1
            self._step = self._member
            return
        self._skip(",")
        try:
            entry, self._position = self._complete_value()
        except _MoreNeeded:
            if len(self._rest) - self._position > self._max_entry or self._closing:
                self._long = LongValue(too_big=not self._closing)
                return
            raise
        self.entries.append(entry)

    def _end(self) -> None:
        if self._rest[self._position :].strip():
            raise BadPage(_NOT_JSON)
        self._position = len(self._rest)

    # --- helpers of the steps ---

    def _finish_long(self, value: "LongValue") -> None:
        """Continue with an entry that is too big or cannot be decoded."""
        self._position = value.feed(self._rest, self._position)
        if not value.ended:
            raise _MoreNeeded
        self._long = None
        self.entries.append(value.result())

    def _after_space(self, position: int) -> int:
        """Return the position of the next character that is not white space, or the end."""
        character = _NOT_SPACE.search(self._rest, position)
        return len(self._rest) if character is None else character.start()

    def _next_character(self) -> str:
        self._position = self._after_space(self._position)
        if self._position >= len(self._rest):
            raise _MoreNeeded
        return self._rest[self._position]

    def _skip(self, character: str) -> None:
        if self._next_character() == character:
            self._position += 1
            self._next_character()

    def _complete_value(self) -> tuple[Any, int]:
        """Return the value at the current position, and the position after it. Raise _MoreNeeded if
        it is incomplete or cannot be decoded."""
        self._next_character()
        try:
            value, end = _decode(self._rest, self._position)
        except (ValueError, RecursionError):
            length = len(self._rest) - self._position
            self._retry_at = min(length + length // 2, self._max_entry + 1)
            if length > self._max_entry and self._step != self._entry:
                raise BadPage(_NOT_JSON) from None
            raise _MoreNeeded from None
        if end >= len(self._rest) and not self._closing:
            raise _MoreNeeded  # a number may have more digits
        return value, end


class LongValue:
    """Reads a long value without keeping all of it: its strings are cut to MAX_TEXT."""

    def __init__(self, *, too_big: bool) -> None:
        self.ended = False
        self._too_big = too_big
        self._kept: list[str] = []
        self._size = 0
        self._depth = 0
        self._string: str | None = None
        """The beginning of the current string, with its escape sequences."""

    def feed(self, text: str, position: int) -> int:
        """Read the text from `position`; return the position up to which it was read."""
        first = text[position : position + 1]
        if first and not self._depth and self._string is None and first not in '{["':
            # A bracket that belongs to nothing is read, too, so that each call makes progress.
            delimiter = _DELIMITER.search(text, position + (first == "}"))
            self.ended = delimiter is not None
            end = delimiter.start() if delimiter else len(text)
            self._keep(text[position : min(end, position + MAX_TEXT)])
            return end
        while position < len(text) and not self.ended:
            if self._string is None:
                piece = _OUTSIDE.match(text, position)
                self._read_outside(piece[0])
                position = piece.end()
                continue
            piece = _STRING.match(text, position)
            self._string = (self._string + piece[0])[: 7 * MAX_TEXT]
            position = piece.end()
            if text[position : position + 1] != '"':
                break  # the rest, if any, is the first half of an escape sequence
            position += 1
            self._end_string(self._string)
        return position

    def result(self) -> Any:
        """Return the entry with its strings cut, or the beginning of a text that is not JSON."""
        text = "".join(self._kept)
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError):
            return text[:MAX_TEXT]
        values = entry.get("data") if isinstance(entry, dict) else None
        if self._too_big and isinstance(values, dict):
            cut = [key for key, value in values.items() if str(value).endswith(ELLIPSIS)]
            values[CUT] = ", ".join(cut[:MAX_NAMES])[:MAX_TEXT]
        return entry

    def _read_outside(self, piece: str) -> None:
        self._keep(piece[:MAX_REST])
        if piece[-1] == '"':
            self._string = ""
        else:
            self._depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(piece[-1], 0)
            self.ended = not self._depth

    def _end_string(self, string: str) -> None:
        beginning = _BEGINNING.match(string)[0]
        self._keep(f'{beginning}{ELLIPSIS if len(beginning) < len(string) else ""}"')
        self._string = None
        self.ended = not self._depth

    def _keep(self, piece: str) -> None:
        if self._size <= MAX_REST:
            self._kept.append(piece)
            self._size += len(piece)
