"""Split a page in JSON into its entries while it arrives, with a size limit for each entry.

Streaming JSON libraries keep each string in memory as a whole, even if it is very long. This parser
reads an entry beyond the limit without keeping all of it: the result is the entry with its strings
cut.
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
_DELIMITER = re.compile(r"[\s,\]}]")
_IN_STRING = re.compile(r'["\\]')
_STRING_REST = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_OUTSIDE = re.compile(r'["{}\[\]]')
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
        if key != LIST:
            self._position = after + 1
            self._key, self._step = key, self._value
            return
        key_position, self._position = self._position, after + 1
        try:
            first = self._next_character()
        except _MoreNeeded:
            self._position = key_position
            raise
        if first != "[":
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
        end = value.feed(self._rest, self._position)
        self._position = len(self._rest) if end is None else end
        if end is None:
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
        self._too_big = too_big
        self._kept: list[str] = []
        self._size = 0
        self._length = 0
        self._depth = 0
        self._in_string = self._escaped = False
        self._string_room, self._is_cut = MAX_TEXT, False
        self._needed = 0
        """Number of characters of the current escape sequence that still have to be kept."""

    def feed(self, text: str, position: int) -> int | None:
        """Read the text from `position`; return the position after the value, or None if the value
        does not end in this text."""
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
        """Return the entry with its strings cut, or, if it is not valid JSON, the beginning of its
        text."""
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
        """Read up to the next bracket or string, and return the position after it."""
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
        """Read up to the next quote or backslash of a string, and return the position after it."""
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
