"""The interface of files and streams from which formats read."""

import codecs
from typing import Protocol

_UTF_16 = {
    **dict.fromkeys((codecs.BOM_UTF16_LE, b"{\0", b"[\0", b"<\0"), "utf-16-le"),
    **dict.fromkeys((codecs.BOM_UTF16_BE, b"\0{", b"\0[", b"\0<"), "utf-16-be"),
}
"""Encodings by the first two bytes of a file of JSON or XML."""


def utf_16_of(head: bytes) -> str:
    """Return the codec of a file that begins so if it is UTF-16, otherwise ""."""
    return _UTF_16.get(head[:2], "")


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
