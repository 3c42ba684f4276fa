"""Files made to use up memory or time. Each is refused in little of both."""

import subprocess
import sys
import time
from itertools import chain

import pytest

from tailrace.domains.timeline.imports.files.formats.base import Format
from tailrace.domains.timeline.imports.files.parsing.file_errors import (
    FileError,
    LimitExceeded,
    Malformed,
)
from tailrace.domains.timeline.imports.files.parsing.json_stream import ITEM_LIMIT
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.reading import detect
from tailrace.domains.timeline.points.points import Point
from tests.timeline.formats.reading import LATEST

MB = 1_000_000
RECORD = b'{"timestamp": "2022-01-12T17:18:24.190Z", "latitudeE7": 1, "longitudeE7": 2}'
RECORDS = b'{"locations": [' + RECORD + b", "
GPX = b'<gpx><trk><trkseg><trkpt lat="1" lon="2"><time>2024-03-01T08:14:00Z</time></trkpt>'


class Endless:
    """A file that begins so and then repeats a piece, up to a gigabyte."""

    def __init__(self, head: bytes, piece: bytes) -> None:
        self.read_bytes = 0
        self._rest = head
        self._piece = piece

    def read(self, size: int) -> bytes:
        if self.read_bytes > 1000 * MB:
            return b""
        while len(self._rest) < size:
            self._rest += self._piece * (size // len(self._piece) + 1)
        data, self._rest = self._rest[:size], self._rest[size:]
        self.read_bytes += size
        return data


HOSTILE = {
    "nested lists": (RECORDS + b'{"a": ', b"[", "nested too deep"),
    "nested objects": (RECORDS, b'{"a":', "nested too deep"),
    "a string": (RECORDS + b'{"a": "', b"x", "longer than 2 MB"),
    "a string that is a key": (RECORDS + b'{"', b"x", "longer than 2 MB"),
    "a number": (RECORDS + b'{"a": ', b"1", "digits"),
    "one record": (RECORDS + b'{"a": [', b"[1, 2, 3, 4],", "longer than 2 MB"),
    "small objects": (RECORDS + b'{"a": [', b"[[]],", "longer than 2 MB"),
    "space in a record": (RECORDS + b'{"a": ', b" ", "longer than 2 MB"),
    "another member": (b'{"locations": [], "others": {', b'"a": [], ', "longer than 2 MB"),
    "nested elements": (GPX, b"<a>", "nested too deep"),
    "nested points": (GPX, b'<trkpt lat="1" lon="2">', "nested too deep"),
    "a tag": (GPX + b"<", b"a", "longer than 1 MB"),
    "an attribute": (GPX + b'<a b="', b"x", "longer than 1 MB"),
    "a comment": (GPX + b"<!-- ", b"x", "longer than 1 MB"),
    "a text": (GPX + b"<name>", b"text ", "longer than 1 MB"),
    "character data": (GPX + b"<name><![CDATA[", b"x", "longer than 1 MB"),
    "entities": (b'<!DOCTYPE gpx [<!ENTITY a "b">', b"<gpx>", "declares entities"),
}


def format_of(head: bytes) -> Format:
    return detect(head if b"<gpx" in head or b"locations" in head else GPX)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name == "small objects" else ())
        for name in HOSTILE
    ],
)
def test_it_is_refused_with_the_place_and_what_came_before(name: str) -> None:
    head, piece, message = HOSTILE[name]
    file = Endless(head, piece)
    tally = Tally(latest=LATEST)
    points: list[Point] = []
    began = time.process_time()

    with pytest.raises(FileError) as refused:
        points.extend(chain.from_iterable(format_of(head).read(file, tally)))

    assert isinstance(refused.value, LimitExceeded | Malformed)
    assert message in str(refused.value)
    assert "(line 1, byte " in str(refused.value)
    assert file.read_bytes < 3 * ITEM_LIMIT
    assert time.process_time() - began < 20
    if head.startswith((RECORDS, GPX)):
        assert len(points) == 1


MEASURED = """
import sys
from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tests.timeline.formats.reading import LATEST, peak_megabytes
from tests.timeline.formats.test_hostile import Endless, HOSTILE, format_of
before = peak_megabytes()
for name in sys.argv[1:]:
    head, piece, _ = HOSTILE[name]
    try:
        for batch in format_of(head).read(Endless(head, piece), Tally(latest=LATEST)):
            pass
    except FileError:
        pass
print(peak_megabytes() - before)
"""


def test_all_of_them_together_take_less_than_150_megabytes() -> None:
    command = [sys.executable, "-c", MEASURED, *HOSTILE]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(output) < 150
