"""Values nested about as deep as Python can go: an error of the file, never of the program."""

import pytest

from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tests.timeline.formats.reading import read

AROUND = range(900, 1006, 2)
"""Levels: the decoder's limit depends on how deep its caller is."""
GOOD = {
    "records": '{"locations": [{"timestampMs": "1641316658000", "latitudeE7": 1, "longitudeE7": 2},'
    ' {"latitudeE7": %s}]}',
    "semantic": '{"timelineObjects": [{"placeVisit": {"location": %s}},'
    ' {"activitySegment": {"startLocation": %s}}, %s]}',
    "timeline": '{"semanticSegments": [%s, {"timelinePath": %s},'
    ' {"timelinePath": [{"point": %s}]}],'
    ' "rawSignals": [{"position": %s}, {"position": {"LatLng": %s}}]}',
    "iOS": '[{"startTime": "2024-03-01T08:14:00Z", "visit": {"topCandidate":'
    ' {"placeLocation": "geo:1,2"}}, "endTime": %s, "timelinePath": [{"point": %s}]},'
    ' {"visit": %s}]',
    "edits": '{"timelineEdits": [{"rawSignal": {"signal": {"position": {"point": %s}}}}, %s]}',
    "feature": '{"type": "FeatureCollection", "features": [%s,'
    ' {"geometry": %s}, {"geometry": {"type": "Point", "coordinates": %s}},'
    ' {"geometry": {"type": "Point", "coordinates": [%s, 1]}, "properties": {"time": %s}}]}',
    "one feature": '{"type": "Feature", "properties": {"a": %s},'
    ' "geometry": {"type": "Point", "coordinates": [%s]}}',
    "owntracks": '2024-03-01T08:14:00Z\t*\t{"_type": "location", "lat": %s, "lon": %s}\n' * 2,
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("nested", [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_no_depth_is_an_error_of_the_program(name: str, nested: tuple[str, str]) -> None:
    outcomes = set()
    for depth in AROUND:
        value = nested[0] * depth + "1" + nested[1] * depth
        pieces = GOOD[name].split("%s")
        for place in range(1, len(pieces)):
            start, rest = "1".join(pieces[:place]), "1".join(pieces[place:])
            result = read(f"{start}{value}{rest}".encode())
            assert result.error is None or isinstance(result.error, FileError)
            outcomes.add(str(result.error).split(" (")[0])
    if name != "owntracks":  # there it costs a line
        assert "The values are nested too deep" in outcomes
