"""Read the lists of a large JSON file item by item, with the decoder of the standard library.

Memory is bounded by ITEM_LIMIT, not by the size of the file: longer items are read piece by piece.
The decoder bounds the nesting (RecursionError). Each item has its position in the file.
"""

import codecs
import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.domains.timeline.imports.files.parsing.file_errors import (
    FileError,
    LimitExceeded,
    Malformed,
)
from tailrace.domains.timeline.imports.files.parsing.readable import Readable, utf_16_of
from tailrace.domains.timeline.imports.files.parsing.whole_items import WholeItems

CHUNK = 65_536
ITEM_LIMIT = 2_000_000
"""Maximum characters of one item of a list, or of one value outside the lists. An item with this
length that consists of small objects takes about 70 MB of memory."""
LONGEST_MEMBER = 1000
"""Maximum characters of a value outside the lists that is kept."""
_LONGEST_CUT = 16
"""An error at most this number of characters before the end of the text may be caused by the end of
the chunk: `-Infinit`, `\\ud83d\\u`."""
_SPACE = re.compile(r"[ \t\r\n]*").match
_AFTER_ITEM = re.compile(r"[ \t\r\n]*([,\]])[ \t\r\n]*").match
_CUT_NUMBER = re.compile(r"(?:\.|[eE][+-]?)\Z").match
"""After a number that the end of the chunk cut: the decoder returns `12` of `12.` and of `12e+`."""
_decode = json.JSONDecoder().raw_decode


@dataclass
class Items:
    """Consecutive items of a list in the file."""

    key: str
    """The list's key in the file's object; "" if the whole file is the list."""
    values: list[Any]
    starts: list[int]
    """Positions of the items in `stream.text`."""
    number: int
    """Number of items in the list before these items."""
    stream: "JsonStream"
    long: "Long | None" = None
    """An item longer than ITEM_LIMIT, whose lists were yielded before. Then `values` is empty."""

    def place(self, index: int) -> dict[str, int]:
        """Return `record`, `line` and `offset` of the item, as arguments of `Tally.reject`."""
        while len(self.starts) < len(self.values):  # the items were decoded at once
            end = _decode(self.stream.text, self.starts[-1])[1]
            after = _AFTER_ITEM(self.stream.text, end)
            self.starts.append(after.end() if after else end)
        return {"record": self.number + index + 1} | self.stream.place(self.starts[index])


@dataclass(frozen=True)
class Fields:
    """The fields to read of a long object, by names such as `geometry.coordinates`."""

    lists: Collection[str]
    members: Collection[str] = ()
    """Names of short values."""


@dataclass(frozen=True)
class Long:
    """The short values of a long object, and its position in the file."""

    members: dict[str, Any]
    place: dict[str, int]


class JsonStream:
    """A JSON file. `lists` can be iterated only once."""

    def __init__(self, file: Readable) -> None:
        self.text = ""
        self._file = file
        self._encoding, self._errors = "utf-8", "surrogateescape"
        self._decoder: codecs.IncrementalDecoder | None = None
        self._position = 0
        self._line = 1
        self._offset = 0
        self._ended = False
        self._file_error: FileError | None = None
        self._long: Mapping[str, Fields] = {}

    def lists(
        self,
        keys: Collection[str],
        members: dict[str, Any] | None = None,
        long: Mapping[str, Fields] | None = None,
    ) -> Iterator[Items]:
        """Yield the items of the file's list, or of the lists in its object that `keys` name, in
        groups of about CHUNK bytes.

        Short values of the object are stored in `members` if their key is already there. Names of
        nested values have dots: `geometry.coordinates`. Raises a FileError after yielding the items
        before the error.

        `long` maps the key of a list, such as `features`, to the fields that are read of its items
        longer than ITEM_LIMIT. The lists in such an item are yielded with keys such as
        `features.geometry.coordinates`, and then its short values as `Items.long`.
        """
        self._long = long or {}
        self._skip_space()
        if self.text.startswith("\ufeff", self._position):
            self._position += 1
        start = self._next_of("[{")
        if start == "[":
            yield from self._list("")
        else:
            yield from self._object("", keys, {} if members is None else members)
        self._skip_space()
        if self._position < len(self.text):
            raise self._malformed("Something follows the end of the JSON")

    def place(self, position: int) -> dict[str, Any]:
        """Return the line (from 1) and byte offset in the file for a position in `text`."""
        before = self.text[:position]
        offset = self._offset + self._size(before)
        return {"line": self._line + before.count("\n"), "offset": offset}

    def _object(self, path: str, keys: Collection[str], members: dict[str, Any]) -> Iterator[Items]:
        """Yield the items of the lists in an object. `path` is its name with a final dot, or ""."""
        if self._skip_empty("}"):
            return
        while True:
            self._skip_space()
            if self.text[self._position : self._position + 1] not in ('"', ""):
                raise self._malformed("A name in quotation marks is expected here")
            key = f"{path}{self._value()}"
            self._next_of(":")
            self._skip_space()
            first = self.text[self._position : self._position + 1]
            if first == "[" and (key in keys or key not in members):
                self._position += 1
                for items in self._list(key):
                    if key in keys:
                        yield items
            elif first == "{" and any(name.startswith(f"{key}.") for name in (*keys, *members)):
                self._position += 1
                yield from self._object(f"{key}.", keys, members)
            else:
                value = self._value()
                if key in members and _is_short(value):
                    members[key] = value
            if self._next_of(",}") == "}":
                return

    def _list(self, key: str) -> Iterator[Items]:
        if self._skip_empty("]"):
            return
        number, ended = 0, False
        whole = WholeItems()
        while not ended:
            items = Items(key, [], [], number, self)
            try:
                ended = self._items_in_text(items, whole)
            except FileError:
                yield items
                raise
            number += len(items.values)
            yield items
            if not ended and key in self._long and self._has_long_object():
                yield from self._long_object(key, number)
                number += 1
                ended = self._next_of(",]") == "]"
                self._skip_space()
            elif not ended:
                try:
                    self._read_more()
                except FileError:
                    yield self._rest_of_text(key, number)
                    raise
                self._skip_space()

    def _rest_of_text(self, key: str, number: int) -> Items:
        """Return the complete items that are left in `text` because one by one they are slow."""
        items = Items(key, [], [], number, self)
        with contextlib.suppress(FileError):
            self._each_item_in_text(items)
        return items

    def _has_long_object(self) -> bool:
        is_long = len(self.text) - self._position > ITEM_LIMIT
        return is_long and self.text[self._position] == "{"

    def _long_object(self, key: str, number: int) -> Iterator[Items]:
        """Read the object at the current position, which is item `number`, piece by piece."""
        place, fields = self.place(self._position), self._long[key]
        lists = [f"{key}.{name}" for name in fields.lists]
        members: dict[str, Any] = dict.fromkeys(f"{key}.{name}" for name in fields.members)
        item = Items(key, [], [], number, self, Long(members, {"record": number + 1} | place))
        self._position += 1
        try:
            yield from self._object(f"{key}.", lists, members)
        except FileError:
            yield item
            raise
        yield item

    def _items_in_text(self, items: Items, whole: WholeItems) -> bool:
        """Decode the complete items in `text`, almost all of them in one call if possible. Return
        whether the list ended."""
        decoded = whole.decode(self.text, self._position)
        if decoded is None:
            ended = self._each_item_in_text(items)
            if len(items.starts) > 1:
                whole.learn(self.text, items.starts[-1])
            return ended
        items.starts.append(self._position)
        items.values, self._position = decoded
        return False

    def _each_item_in_text(self, items: Items) -> bool:
        """Decode the complete items in `text` one by one. Return whether the list ended."""
        text, position = self.text, self._position
        values, starts = items.values, items.starts
        try:
            while True:
                value, end = _decode(text, position)
                if text.startswith(",{", end):
                    starts.append(position)
                    values.append(value)
                    position = end + 1
                    continue
                after = _AFTER_ITEM(text, end)
                if after is None:
                    self._position = end
                    self._check_separator()
                    self._position = position
                    return False
                starts.append(position)
                values.append(value)
                position = after.end()
                if after[1] == "]":
                    self._position = position
                    return True
        except (ValueError, RecursionError) as error:
            self._position = position
            self._check_decoding(error)
            return False

    def _check_separator(self) -> None:
        """Raise a FileError unless only white space follows and more of the file is to be read."""
        if self._is_cut_number(self._position):
            return
        if _end_of_space(self.text, self._position) < len(self.text):
            raise self._malformed("A comma or the end of the list is expected here")
        if self._ended:
            raise self._malformed("The file ends in the middle")

    def _is_cut_number(self, end: int) -> bool:
        """Return whether the value that ends here may go on in the next piece of the file."""
        return not self._ended and _CUT_NUMBER(self.text, end) is not None

    def _value(self) -> Any:
        """Decode one value. Read more of the file until the value is complete."""
        while True:
            try:
                value, end = _decode(self.text, self._position)
            except (ValueError, RecursionError) as error:
                self._check_decoding(error)
            else:
                complete = end < len(self.text) and not self._is_cut_number(end)
                if complete or self._ended:
                    self._position = end
                    return value
            self._read_more()

    def _check_decoding(self, error: ValueError | RecursionError) -> None:
        """Raise a FileError for the value at the current position, unless the value may only be
        incomplete."""
        if isinstance(error, RecursionError):
            raise self._error(LimitExceeded, "The values are nested too deep")
        if not isinstance(error, json.JSONDecodeError):
            raise self._error(LimitExceeded, "A number has too many digits")
        unterminated = error.msg.startswith("Unterminated")
        if not self._ended and (unterminated or error.pos >= len(self.text) - _LONGEST_CUT):
            return
        if unterminated or error.pos >= len(self.text):
            raise self._malformed("The file ends in the middle")
        self._position = error.pos
        raise self._malformed("This is not valid JSON")

    def _next_of(self, characters: str) -> str:
        """Skip white space and one of the characters; return the character."""
        self._skip_space()
        character = self.text[self._position : self._position + 1]
        if character and character in characters:
            self._position += 1
            return character
        if not character:
            raise self._malformed("The file ends in the middle")
        expected = " or ".join(f"“{each}”" for each in characters)
        raise self._malformed(f"{expected} is expected here")

    def _skip_empty(self, closing: str) -> bool:
        self._skip_space()
        empty = self.text.startswith(closing, self._position)
        self._position += empty
        return empty

    def _skip_space(self) -> None:
        while True:
            self._position = _end_of_space(self.text, self._position)
            if self._position < len(self.text) or self._ended:
                return
            self._read_more()

    def _read_more(self) -> None:
        """Drop the text before the current position, and append the next piece of the file."""
        rest = self.text[self._position :]
        if len(rest) > ITEM_LIMIT:
            message = f"One value is longer than {ITEM_LIMIT // 1_000_000} MB"
            raise self._error(LimitExceeded, message)
        # An incomplete value is decoded again from its beginning, so the text doubles each time.
        piece = self._read(max(CHUNK, min(len(rest), ITEM_LIMIT - len(rest))))
        before = self.text[: self._position]
        self._line += before.count("\n")
        self._offset += self._size(before)
        self.text = rest + self._decoded(piece)
        self._position = 0
        self._ended = not piece

    def _decoded(self, piece: bytes) -> str:
        if self._decoder is None:
            if utf_16 := utf_16_of(piece):
                self._encoding, self._errors = utf_16, "replace"
            self._decoder = codecs.getincrementaldecoder(self._encoding)(self._errors)
        # Half a character of UTF-16 at the end is left out: the file was cut there.
        return self._decoder.decode(piece, final=not piece and self._encoding == "utf-8")

    def _size(self, text: str) -> int:
        """Return the number of bytes of the text in the file."""
        return len(text.encode(self._encoding, self._errors))

    def _read(self, size: int) -> bytes:
        """Read `size` bytes, or less at the end of the file. A FileError of the stream is raised by
        the next call if bytes before the error were read."""
        pieces: list[bytes] = []
        try:
            while self._file_error is None and size > 0 and (piece := self._file.read(size)):
                pieces.append(piece)
                size -= len(piece)
        except FileError as error:
            self._file_error = error
        if self._file_error is not None and not pieces:
            raise self._file_error
        return b"".join(pieces)

    def _malformed(self, message: str) -> FileError:
        return self._error(Malformed, message)

    def _error(self, kind: type[FileError], message: str) -> FileError:
        return kind(message, **self.place(self._position))


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE(text, position)
    return match.end() if match else position


def _is_short(value: object) -> bool:
    return not isinstance(value, dict | list) and len(str(value)) <= LONGEST_MEMBER
