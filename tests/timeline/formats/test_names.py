"""Files with millions of different names, which a parser would keep: each is refused with a
sentence, or read, in little memory. Each is measured in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.timeline.formats.test_hostile import GPX, RECORD

NAMED = {
    "elements": (GPX, b"<a%d/>", 20),
    "elements, packed in points": (GPX, b'<trkpt lat="1" lon="2"><a%d/></trkpt>', 20),
    "long elements": (GPX, b"<a%0900000d/>", 30),
    "attributes": (GPX, b'<a b%d=""/>', 29),
    "attributes of one tag": (GPX + b"<a ", b'b%d="" ', 20),
    "attributes of tags just within their length": (
        GPX + b"<a %s/>" % b" ".join(b'b%d=""' % n for n in range(85_000)),
        b"<a%d/>",
        20,
    ),
    "long attributes": (GPX, b'<a b%0900000d=""/>', 30),
    "prefixes": (GPX, b"<p%d:a/>", 20),
    "prefixes that are declared": (GPX, b'<a xmlns:p%d="u"/>', 20),
    "declared attributes": (b"<!DOCTYPE gpx [<!-- <gpx> -->", b'<!ATTLIST a%d b CDATA "c">', 20),
    "processing instructions": (GPX, b"<?p%d q?>", 20),
    "keys of records": (b'{"locations": [' + RECORD, b', {"k%d": 1}', 6),
    "keys of one record": (b'{"locations": [' + RECORD + b", {", b'"k%d": 1, ', 6),
    "keys of the file": (b'{"locations": [' + RECORD + b"], ", b'"k%d": 1, ', 6),
    "keys of objects in the file": (b'{"locations": [' + RECORD + b"], ", b'"k%d": {"l": 1}, ', 6),
    "keys of features": (
        b'{"type": "FeatureCollection", "features": [{"type": "Feature"}',
        b', {"type": "Feature", "properties": {"k%d": 1, "l%d": 2}}',
        6,
    ),
    "keys of lines": (
        b'{"_type": "location"}\n',
        b'{"_type": "location", "k%d": 1}\n',
        6,
    ),
}
"""Name → beginning of the file, piece with a number, megabytes."""
READ = {"processing instructions", "keys of records", "keys of features", "keys of lines"}
"""Files of which nothing is kept: they are read to their end. The others are refused, or end in the
middle."""
SLOW = {
    "attributes of tags just within their length", "long attributes", "prefixes that are declared",
    "processing instructions", "keys of the file", "keys of objects in the file",
    "keys of features", "keys of lines",
}  # fmt: skip
MOST = 100
"""Megabytes of the whole process. The bound of imports is 150."""


class Numbered:
    """A file that begins so and goes on with the numbered pieces."""

    def __init__(self, name: str) -> None:
        self._head, self._piece, megabytes = NAMED[name]
        self._size = megabytes * 1_000_000
        self._pieces = self._all()
        self._rest = b""

    def _all(self) -> Iterator[bytes]:
        yield self._head
        written, count = 0, self._piece.count(b"%")
        number, step = 0, 1 if b"%09" in self._piece else 100
        while written < self._size:
            text = b"".join(self._piece % ((n,) * count) for n in range(number, number + step))
            number += step
            written += len(text)
            yield text

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        assert position == 0
        self._pieces, self._rest = self._all(), b""
        return self._size

    def tell(self) -> int:
        return 0


MEASURED = """
import json, sys
from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.reading import read_points
from tests.timeline.formats.reading import peak_megabytes
from tests.timeline.formats.test_names import Numbered
error, points = "", 0
try:
    for batch in read_points(Numbered(sys.argv[1]), Tally(latest=2**60)):
        points += len(batch)
except FileError as raised:
    error = raised.with_advice()
print(json.dumps([peak_megabytes(), error, points]))
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in SLOW else ()) for name in NAMED]
)
def test_millions_of_names_take_little_memory(name: str) -> None:
    command = [sys.executable, "-c", MEASURED, name]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    megabytes, error, points = json.loads(output)

    assert megabytes < MOST, error
    assert points or NAMED[name][0] != GPX
    if name not in READ:
        assert error, "it is refused, with a sentence"


LIMITED = """
import resource
from itertools import chain
from tailrace.domains.timeline.imports.files.memory import limited_memory
from tailrace.domains.timeline.imports.files.parsing.file_errors import LimitExceeded
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.reading import read_points
from tests.timeline.formats.test_hostile import GPX
from tests.timeline.formats.test_names import Hoarding

before = resource.getrlimit(resource.RLIMIT_AS)
tally = Tally(latest=2**60)
try:
    with limited_memory(300_000_000), limited_memory(10**12):
        for batch in read_points(Hoarding(GPX), tally):
            pass
except LimitExceeded as error:
    print(error.with_advice())
print(tally.accepted > 0, resource.getrlimit(resource.RLIMIT_AS) == before)
"""


class Hoarding:
    """A file that keeps 10 MB more with each piece, as a parser with a leak would."""

    def __init__(self, head: bytes) -> None:
        self._point = head[head.index(b"<trkpt") :]
        self._next = head
        self._kept: list[bytes] = []

    def read(self, size: int) -> bytes:
        if size == 4:  # the look at its beginning
            return self._next[:size]
        self._kept.append(b"x" * 10_000_000)
        piece, self._next = self._next, self._point * 900
        return piece[:size]

    def seek(self, position: int, whence: int = 0) -> int:
        return 10**12

    def tell(self) -> int:
        return 0


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux")
def test_a_file_that_takes_too_much_memory_is_refused_and_the_process_lives_on() -> None:
    command = [sys.executable, "-c", LIMITED]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sentence, after = output.splitlines()
    assert sentence.startswith("Reading the file takes more memory than an import may use. Export")
    assert after == "True True"
