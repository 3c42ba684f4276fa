"""Split a page in JSON into its entries while it arrives, with a limit on each entry.

A library that yields parts of a document holds each string whole, however long it is. Here an entry
beyond the limit is read on without being kept: what remains is the entry with its strings cut.
"""

import json
import re
from codecs import getincrementaldecoder
from typing import Any

from tailrace.domains.builds.cut_values import CUT
from tailrace.domains.builds.sources.log_page import BadPage, IncompletePage

MAX_TEXT = 1000
"""Characters that are kept of each string of an entry that is too big."""
MAX_REST = 50_000
"""Characters of such an entry that are kept in all."""
MAX_NAMES = 20
ELLIPSIS = "..."
LIST = "notification"
_NOT_SPACE = re.compile(r"[^ \t\r\n]")
_DELIMITER = re.compile(r"[\s,\]}]")
_IN_STRING = re.compile(r'["\\]')
_STRING_REST = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_OUTSIDE = re.compile(r'["{}\[\]]')
_decode = json.JSONDecoder().raw_decode


class _More(Exception):
    """More of the document is needed."""


class JsonPage:
    """`entries` are the entries that are complete, `members` what else the page's object has."""

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
        """Take the next piece of the document; raise BadPage if it is none."""
        self._rest = self._rest[self._position :] + self._text.decode(chunk)
        self._position = 0
        if len(self._rest) >= self._retry_at:
            self._read()

    def finish(self) -> None:
        """Take the end of the document; raise IncompletePage if it comes too early."""
        self._closing = True
        self._rest += self._text.decode(b"", True)
        self._read()
        if self._step != self._end:
            raise IncompletePage("something incomplete, not a page in JSON")

    def _read(self) -> None:
        self._retry_at = 0
        try:
            while self._step != self._end or self._position < len(self._rest):
                self._step()
        except _More:
            pass

    # --- the steps: each reads something and sets the next step, or raises _More ---

    def _begin(self) -> None:
        first = self._next_character()
        if first != "{":
            kind = "JSON, but not a page of the log: not an object"
            raise BadPage(kind if first in '["' else "something else, not a page in JSON")
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
            raise _More
        if not isinstance(key, str) or self._rest[after] != ":":
            raise BadPage("something else, not a page in JSON")
        if key != LIST:
            self._position = after + 1
            self._key, self._step = key, self._value
            return
        before, self._position = self._position, after + 1
        try:
            first = self._next_character()
        except _More:
            self._position = before
            raise
        if first != "[":
            raise BadPage("JSON, but not a page of the log: `notification` is not a list")
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
        except _More:
            if len(self._rest) - self._position > self._max_entry or self._closing:
                self._long = LongValue(too_big=not self._closing)
                return
            raise
        self.entries.append(entry)

    def _end(self) -> None:
        if self._rest[self._position :].strip():
            raise BadPage("something else, not a page in JSON")
        self._position = len(self._rest)

    # --- their parts ---

    def _finish_long(self, value: "LongValue") -> None:
        """Read on in an entry that is too big, or cannot be decoded."""
        end = value.feed(self._rest, self._position)
        self._position = len(self._rest) if end is None else end
        if end is None:
            raise _More
        self._long = None
        self.entries.append(value.result())

    def _after_space(self, position: int) -> int:
        """Return where the next character stands that is no white space, or the end."""
        character = _NOT_SPACE.search(self._rest, position)
        return len(self._rest) if character is None else character.start()

    def _next_character(self) -> str:
        self._position = self._after_space(self._position)
        if self._position >= len(self._rest):
            raise _More
        return self._rest[self._position]

    def _skip(self, character: str) -> None:
        if self._next_character() == character:
            self._position += 1
            self._next_character()

    def _complete_value(self) -> tuple[Any, int]:
        """Return the value at the position and where it ends. Raise _More if it is incomplete, or
        cannot be decoded."""
        self._next_character()
        try:
            value, end = _decode(self._rest, self._position)
        except (ValueError, RecursionError):
            length = len(self._rest) - self._position
            self._retry_at = min(length + length // 2, self._max_entry + 1)
            if length > self._max_entry and self._step != self._entry:
                raise BadPage("something else, not a page in JSON") from None
            raise _More from None
        if end >= len(self._rest) and not self._closing:
            raise _More  # of a number, there may be more digits
        return value, end


class LongValue:
    """A value that is read on without being kept whole: its strings are cut to MAX_TEXT."""

    def __init__(self, *, too_big: bool) -> None:
        self._too_big = too_big
        self._kept: list[str] = []
        self._size = 0
        self._length = 0
        self._depth = 0
        self._in_string = self._escaped = False
        self._string_room, self._is_cut = MAX_TEXT, False
        self._needed = 0
        """Characters of the present escape sequence that have to be kept."""

    def feed(self, text: str, position: int) -> int | None:
        """Take more of the text; return where the value ends in it, or None."""
        if not self._length and text[position] not in '{["':
            delimiter = _DELIMITER.search(text, position)
            end = delimiter.start() if delimiter else len(text)
            self._keep(text[position : min(end, position + MAX_TEXT)])
            return end if delimiter else None
        start = position
        while position < len(text):
            position = (
                self._string(text, position) if self._in_string else self._jump(text, position)
            )
            if not self._depth and not self._in_string and self._kept:
                self._length += position - start
                return position
        self._length += position - start
        return None

    def result(self) -> Any:
        """Return the entry with its strings cut, or the beginning of its text."""
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

    def _jump(self, text: str, position: int) -> int:
        """Read to the next bracket or string."""
        match = _OUTSIDE.search(text, position)
        end = match.end() if match else len(text)
        self._keep(text[position : min(end, position + MAX_REST)])
        if match:
            character = match.group()
            self._in_string = character == '"'
            self._string_room, self._is_cut = MAX_TEXT, False
            self._depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(character, 0)
        return end

    def _string(self, text: str, position: int) -> int:
        """Read to the next quote or backslash of a string."""
        if self._escaped:
            self._escaped = False
            if self._string_room > 0:
                self._keep(text[position])
                self._needed = 4 if text[position] == "u" else 0
                self._string_room -= 1
            return position + 1
        if self._string_room <= 0 and not self._needed:
            rest = _STRING_REST.match(text, position)
            position = rest.end() if rest else position
            self._is_cut = True
        match = _IN_STRING.search(text, position)
        end = match.start() if match else len(text)
        room = max(self._string_room, self._needed)
        self._keep(text[position : min(end, position + room)])
        self._needed = max(self._needed - (end - position), 0)
        self._is_cut = self._is_cut or end - position > room
        self._string_room -= end - position
        if not match:
            return end
        if match.group() == '"':
            self._in_string = False
            self._keep(f'{ELLIPSIS}"' if self._is_cut else '"')
        else:
            self._escaped = True
            if self._string_room > 0:
                self._keep("\\")
            else:
                self._is_cut = True
        return match.end()

    def _keep(self, piece: str) -> None:
        if self._size <= MAX_REST:
            self._kept.append(piece)
            self._size += len(piece)
