import random

import pytest

from tailrace.domains.timeline.imports.files.parsing.file_errors import UnknownFormat
from tailrace.domains.timeline.imports.files.reading import all_formats, detect
from tests.timeline.formats.reading import TRACKS, read

NAMES = {
    "gpx": "gpx/georust-wikipedia_example.gpx",
    "google_records": "synthetic/Records-bom.json",
    "google_semantic": "synthetic/2021_JANUARY-semantic.json",
    "google_timeline": "synthetic/Timeline-android.json",
    "google_location_history": "synthetic/location-history-ios.json",
    "google_timeline_edits": "synthetic/Timeline-takeout-timelineEdits.json",
    "geojson": "synthetic/points.geojson",
    "owntracks_rec": "synthetic/owntracks-2024-03.rec",
}
OTHERS = {
    "geojson_lines": b'{"type": "Feature", "geometry": null}\n' * 2,
    "owntracks_rec": b'{"_type": "location", "lat": 1}\n' * 2,
    "owntracks_json": b'{"count": 1, "data": [{"_type": "location", "lat": 1}]}',
}


def test_each_format_has_a_file_that_only_it_recognises() -> None:
    assert {one.name for one in all_formats()} == {*NAMES, *OTHERS}
    heads = [(name, (TRACKS / path).read_bytes()) for name, path in NAMES.items()]
    for name, head in [*heads, *OTHERS.items()]:
        assert detect(head).name == name
        text = head.removeprefix(b"\xef\xbb\xbf")
        assert [one.name for one in all_formats() if one.recognises(text)] == [name]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "The file is empty."),
        (b" \r\n\0\0", "The file is empty."),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "This is a web page"),
        (b'<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2">', "KML and TCX"),
        (random.Random(1).randbytes(100_000), "This is a binary file"),
        (b'{"key": "value"}', "This JSON file is not a location history"),
        (b"[1, 2, 3]", "This JSON file is not a location history"),
        (b"lat,lon\n1,2\n", "This file is not a location history"),
    ],
)
def test_what_is_no_location_history_is_refused_with_a_sentence(
    content: bytes, sentence: str
) -> None:
    result = read(content)
    assert isinstance(result.error, UnknownFormat)
    assert str(result.error).startswith(sentence)
    assert result.tally.read == 0
