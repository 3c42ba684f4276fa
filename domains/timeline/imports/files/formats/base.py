"""The base classes of file formats."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from tailrace.domains.timeline.imports.files.parsing.json_points import AtOnce, ReadItem, points_of
from tailrace.domains.timeline.imports.files.parsing.json_stream import JsonStream
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.points.points import Point

HEAD = 65_536
"""Number of bytes at the beginning of a file that decide its format."""
BATCH = 2_000
"""Approximate points of a batch: a format yields a list of points once it has about this many."""


class Format(ABC):
    """A file format. Subclasses in this package are discovered. All files share one instance, so a
    format must not store data of a file in its attributes."""

    name: ClassVar[str]
    """Name that is stored with the import, such as "gpx"."""
    label: ClassVar[str]
    """Name that pages show, such as "GPX track"."""
    rank: ClassVar[int] = 0
    """Formats are tried in ascending order of rank: specific formats before general ones."""

    has_tags: ClassVar[bool] = False
    """Whether the points have the tags of their devices, which `Tally.tag_filter` selects."""

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes has this format. `head` has up to HEAD
        bytes, without byte order mark and leading white space."""

    @abstractmethod
    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        """Yield the points of the file in batches, and count rejected points in `tally`.

        If the file is broken, raise a FileError after yielding all points before the error.
        """


class JsonFormat(Format):
    """A JSON file with lists of items that have points."""

    begins: ClassVar[bytes] = b"{"
    marks: ClassVar[re.Pattern[bytes]]
    """Matches within the beginning of the files of this format."""
    lists: ClassVar[Mapping[str, ReadItem]]
    """The keys of the lists ("" if the file is the list), and functions that read one item."""
    at_once: ClassVar[Mapping[str, AtOnce]] = {}
    """Faster functions for some of the lists, which read simple items."""

    def recognises(self, head: bytes) -> bool:
        return head.startswith(self.begins) and bool(self.marks.search(head))

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        for items in JsonStream(file).lists(self.lists):
            yield points_of(items, tally, self.lists[items.key], self.at_once.get(items.key))
