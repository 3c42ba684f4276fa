"""Times as ISO 8601, RFC 3339 and XML allow them, in the formats that have them."""

import json

import pytest

from tests.timeline.formats.reading import at, read

RARE = {
    "2024-02-29T24:00:00Z": "2024-03-01T00:00:00Z",
    "2024-12-31T24:00:00.000+01:00": "2024-12-31T23:00:00Z",
    "2024-12-31T24:00Z": "2025-01-01T00:00:00Z",
    "2016-12-31T23:59:60Z": "2017-01-01T00:00:00Z",
    "2016-12-31T23:59:60.250Z": "2017-01-01T00:00:00.250Z",
    "2016-12-31T15:59:60-08:00": "2017-01-01T00:00:00Z",
    "2017-01-01T05:29:60+05:30": "2017-01-01T00:00:00Z",
    "2024-03-01T08:14:00z": "2024-03-01T08:14:00Z",
    "2024-03-01t08:14:00z": "2024-03-01T08:14:00Z",
}
"""A time as it may be written, and the usual form."""
NONE = [
    "2024-03-01T24:00:01Z", "2024-03-01T24:01:00Z", "2024-03-01T25:00:00Z", "2024-03-01T08:14:60Z",
    "2016-12-30T23:59:60Z", "2016-12-31T23:59:61Z", "1_709_280_840", "\u0661\u0667\u0660\u0669",
    "2024-02-30T24:00:00Z", "1e400",
]  # fmt: skip


def gpx(*times: str) -> bytes:
    points = "".join(f'<trkpt lat="1" lon="2"><time>{time}</time></trkpt>\n' for time in times)
    return f"<gpx><trk><trkseg>{points}</trkseg></trk></gpx>".encode()


def records(*times: str) -> bytes:
    listed = [{"latitudeE7": 1, "longitudeE7": 2, "timestamp": time} for time in times]
    return json.dumps({"locations": listed}).encode()


def features(*times: str) -> bytes:
    point = {"type": "Point", "coordinates": [1, 2]}
    listed = [
        {"type": "Feature", "geometry": point, "properties": {"time": time}} for time in times
    ]
    return json.dumps({"type": "FeatureCollection", "features": listed}).encode()


@pytest.mark.parametrize("file_of", [gpx, records, features])
def test_rare_forms_are_read(file_of) -> None:
    usual = "2024-03-01T08:14:00Z"
    result = read(file_of(*RARE, usual))
    assert result.times == [at(time) for time in (*RARE.values(), usual)]


@pytest.mark.parametrize("file_of", [gpx, records, features])
def test_a_time_that_does_not_exist_is_rejected(file_of) -> None:
    result = read(file_of("2024-03-01T08:14:00Z", *NONE))
    assert (len(result.points), dict(result.tally.rejected)) == (1, {"unparsable value": len(NONE)})
    for time in NONE:
        assert read(file_of(time, time)).points == []


def test_a_number_with_an_exponent_is_a_time() -> None:
    assert (
        read(features("1.70928084E9", " 1709280840 ", "1709280840000")).times
        == [at("2024-03-01T08:14:00Z")] * 3
    )
