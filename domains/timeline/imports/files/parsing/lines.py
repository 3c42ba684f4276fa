"""Read a file line by line, in groups of lines."""

import json
from collections.abc import Callable
from typing import Any

from tailrace.domains.timeline.imports.files.parsing.file_errors import (
    FileError,
    LimitExceeded,
    Malformed,
)
from tailrace.domains.timeline.imports.files.parsing.readable import Readable

CHUNK = 65_536
MAX_LINE = 100_000


def first_object(head: bytes) -> dict[str, Any]:
    """Return the JSON object on the first line; {} if the line is none."""
    try:
        value = json.loads(head.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class Lines:
    """The lines of a file. `parse` raises ValueError or RecursionError for a line that is cut."""

    def __init__(self, file: Readable, parse: Callable[[bytes], Any]) -> None:
        self.lines: list[bytes] = []
        self.number = 1
        """Number of the first of `lines` in the file."""
        self.offset = 0
        """Byte where the first of `lines` begins."""
        self.ended = False
        self._file = file
        self._parse = parse
        self._rest = b""

    def read(self) -> FileError | None:
        """Read the next lines. Return the error in the file after these lines, or None."""
        self.number += len(self.lines)
        self.offset += sum(map(len, self.lines)) + len(self.lines)
        self.lines = []
        try:
            piece = self._file.read(CHUNK)
        except FileError as error:
            self.ended = True
            return error
        *self.lines, self._rest = (self._rest + piece).split(b"\n")
        if not piece:
            self.ended = True
            if self._rest.strip():
                return self._last()
        if len(self._rest) > MAX_LINE:
            return self._error(LimitExceeded, f"A line is longer than {MAX_LINE:,} bytes")
        return None

    def place(self, index: int) -> dict[str, Any]:
        """Return `line` and `offset` of a line, as arguments of `Tally.reject`."""
        before = sum(map(len, self.lines[:index])) + index
        return {"line": self.number + index, "offset": self.offset + before}

    def _last(self) -> FileError | None:
        """Add the last line of the file, which may lack its line end, if it is complete. Return an
        error if it is not."""
        try:
            self._parse(self._rest)
        except (ValueError, RecursionError):
            return self._error(Malformed, "The file ends in the middle of a line")
        self.lines.append(self._rest)
        return None

    def _error(self, kind: type[FileError], message: str) -> FileError:
        return kind(message, **self.place(len(self.lines)))
