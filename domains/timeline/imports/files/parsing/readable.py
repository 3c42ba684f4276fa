"""The interface of files and streams from which formats read."""

from typing import Protocol


class Readable(Protocol):
    """A stream of bytes. `read` returns at most `size` bytes, and b"" at the end. It may raise a
    FileError."""

    def read(self, size: int, /) -> bytes: ...
