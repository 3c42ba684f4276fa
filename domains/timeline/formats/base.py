"""`Format`: how points are read from the files of one application."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from tailrace.domains.timeline.parsing.readable import Readable
from tailrace.domains.timeline.parsing.tally import Tally
from tailrace.domains.timeline.points import Point

HEAD = 65_536
"""Bytes of a file's beginning by which its format is detected."""
BATCH = 2_000
"""Points of a batch, about: a list of points is yielded when it has so many or more."""


class Format(ABC):
    """A file format. Subclasses in this package are found by themselves; one instance serves all
    files, so a format keeps nothing of a file in itself."""

    name: ClassVar[str]
    """Stored with the import: "gpx"."""
    label: ClassVar[str]
    """For people: "GPX track"."""
    rank: ClassVar[int] = 0
    """Formats are tried in this order: specific before general."""

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes (up to HEAD, no byte order mark, no
        leading white space) is of this format."""

    @abstractmethod
    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        """Yield the points of the file in batches; bad ones are counted in `tally` instead. Raise
        a FileError at the place where the file is broken, after all points before it."""
