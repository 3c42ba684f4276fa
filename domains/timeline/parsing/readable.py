"""What formats read from: a file, or a stream that unpacks one."""

from typing import Protocol


class Readable(Protocol):
    """Gives the next bytes, at most `size`; b"" at the end. May raise a FileError."""

    def read(self, size: int, /) -> bytes: ...
