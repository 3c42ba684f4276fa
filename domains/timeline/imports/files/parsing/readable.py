"""The interface of files and streams from which formats read."""

from typing import Protocol


class Readable(Protocol):
    """A stream of bytes. `read` returns at most `size` bytes, and b"" at the end. It may raise a
    FileError."""

    def read(self, size: int, /) -> bytes: ...


class Rewound:
    """A stream whose first bytes were read before; `read` returns them again."""

    def __init__(self, head: bytes, file: Readable) -> None:
        self._head = head
        self._file = file

    def read(self, size: int, /) -> bytes:
        if self._head:
            piece, self._head = self._head[:size], self._head[size:]
            return piece
        return self._file.read(size)
