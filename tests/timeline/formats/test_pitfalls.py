"""What exports get wrong, format by format: one small file for each, and what is read of it."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.timeline.formats.reading import at, read

TIME = "2024-03-01T08:14:00Z"
POINT = f'<trkpt lat="52.52" lon="13.405"><time>{TIME}</time></trkpt>'
HERE = (52.52, 13.405)


@dataclass(frozen=True)
class Pitfall:
    """A file, and what is read of it."""

    file: bytes
    places: list[tuple[float, float]]
    rejected: dict[str, int] = field(default_factory=dict)
    times: list[str] | None = None
    measures: tuple[Any, ...] | None = None
    """Altitude, accuracy, speed and course of the first point."""


def gpx(points: str, root: str = '<gpx xmlns="http://www.topografix.com/GPX/1/1">') -> bytes:
    return f"{root}<trk><trkseg>{points}</trkseg></trk></gpx>".encode()


def text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def record(**members: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "latitudeE7": 525_200_000, "longitudeE7": 134_050_000} | members


def records(*items: Any) -> bytes:
    return text({"locations": items})


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def features(*items: Any) -> bytes:
    return text({"type": "FeatureCollection", "features": items})


def spot(*more: Any) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [13.405, 52.52, *more]}


def segments(*path: Any) -> bytes:
    return text({"semanticSegments": [{"startTime": TIME, "endTime": TIME, "timelinePath": path}]})


def iphone(point: str, minutes: Any) -> bytes:
    path = [{"point": point, "durationMinutesOffsetFromStartTime": minutes}]
    return text([{"startTime": TIME, "endTime": TIME, "timelinePath": path}])


SIGNAL = {"position": {"point": {"latE7": 525_200_000, "lngE7": 134_050_000},
                       "accuracyMm": 13_000, "timestamp": TIME}}  # fmt: skip
RAW = {"LatLng": "52.52°, 13.405°", "timestamp": TIME}
PLACE = {"latitudeE7": 525_200_000, "longitudeE7": 134_050_000}
ACTIVITY = {"duration": {"startTimestamp": TIME, "endTimestamp": TIME},
            "startLocation": PLACE, "endLocation": {}}  # fmt: skip
OWNTRACKS = f'{TIME}\t*\t{{"_type":"location","lat":52.52,"lon":13.405,"tst":1709280840}}\n'
LWT = f'{TIME}\tlwt\t{{"_type":"lwt","tst":1709280840}}\n'
TRANSITION = OWNTRACKS.replace('"location"', '"transition"').replace("*", "transition")
WAYPOINT = OWNTRACKS.replace('"location"', '"waypoint"').replace("*", "waypoint")

PITFALLS = {
    "gpx: version 1.0": Pitfall(
        gpx(POINT, '<gpx version="1.0" xmlns="http://www.topografix.com/GPX/1/0">'), [HERE]
    ),
    "gpx: no version and no namespace": Pitfall(gpx(POINT, "<gpx>"), [HERE]),
    "gpx: names with a prefix": Pitfall(
        gpx(POINT).replace(b"</", b"</g:").replace(b"<t", b"<g:t")
        .replace(b"<gpx xmlns", b"<g:gpx xmlns:g"), [HERE],
    ),
    "gpx: a prefix that is not declared": Pitfall(
        gpx(POINT.replace("</trkpt>", "<x:hr>7</x:hr></trkpt>")), [HERE]
    ),
    "gpx: an empty altitude": Pitfall(
        gpx(POINT.replace("<time>", "<ele/><time>")), [HERE], measures=(None,) * 4
    ),
    "gpx: a latitude that is undefined": Pitfall(
        gpx(POINT.replace("52.52", "undefined") + POINT), [HERE], {"unparsable value": 1}
    ),
    "gpx: a decimal comma": Pitfall(gpx(POINT.replace("52.52", "52,52")), [HERE]),
    "gpx: a planned route without times": Pitfall(
        b'<gpx><rte><rtept lat="1" lon="2"/><rtept lat="1" lon="3"/></rte></gpx>', [],
        {"no time": 2},
    ),
    "gpx: a pause marker": Pitfall(
        gpx(POINT + POINT.replace("52.52", "100").replace("13.405", "180")), [HERE],
        {"coordinates out of range": 1},
    ),
    "gpx: a byte order mark": Pitfall(b"\xef\xbb\xbf" + gpx(POINT), [HERE]),
    "gpx: hdop is not metres": Pitfall(
        gpx(POINT.replace("<time>", "<hdop>1.5</hdop><time>")), [HERE], measures=(None,) * 4
    ),
    "records: a coordinate that wraps": Pitfall(
        records(record(latitudeE7=3_956_000_000, longitudeE7=4_278_000_000)),
        [(-33.8967296, -1.6967296)],
    ),
    "records: without coordinates": Pitfall(
        records({"timestamp": TIME, "source": "UNKNOWN"}, record()), [HERE], {"no coordinates": 1}
    ),
    "records: the time as a text of milliseconds": Pitfall(
        records({"timestampMs": "1709280840000", **PLACE}), [HERE], times=[TIME]
    ),
    "records: nested activities and wifi scans": Pitfall(
        records(record(
            activity=[{"timestampMs": "1", "activity": [{"type": "STILL", "confidence": 75}]}],
            activeWifiScan={"accessPoints": [{"mac": "1", "strength": -70}]},
            locationMetadata=[{"wifiScan": {"accessPoints": []}, "timestamp": "1"}],
        )), [HERE],
    ),
    "semantic: waypoints without times": Pitfall(
        text({"timelineObjects": [{"activitySegment": {
            **ACTIVITY, "endLocation": PLACE,
            "waypointPath": {"waypoints": [{"latE7": 525_200_000, "lngE7": 134_050_000}] * 2},
        }}]}), [HERE, HERE], {"no time": 2},
    ),
    "semantic: locations without coordinates": Pitfall(
        text({"timelineObjects": [{"activitySegment": ACTIVITY}]}), [HERE], {"no coordinates": 1}
    ),
    "timeline: segments that are null": Pitfall(
        text({"semanticSegments": None, "rawSignals": [{"position": RAW}]}), [HERE]
    ),
    "timeline: latLng in small letters": Pitfall(
        text({"semanticSegments": [], "rawSignals": [
            {"position": {"latLng": RAW["LatLng"], "timestamp": TIME}}]}), [HERE],
    ),
    "timeline: several points in one minute": Pitfall(
        segments(*[{"point": f"52.52°, {13 + n}.0°", "time": TIME} for n in range(3)]),
        [(52.52, 13.0), (52.52, 14.0), (52.52, 15.0)], times=[TIME] * 3,
    ),
    "iphone: a list at the root, numbers as texts": Pitfall(
        iphone("geo:52.52,13.405", "10"), [HERE], times=["2024-03-01T08:24:00Z"]
    ),
    "iphone: a negative offset": Pitfall(
        iphone("geo:52.52,13.405", -14), [HERE], times=["2024-03-01T08:00:00Z"]
    ),
    "iphone: a third value": Pitfall(iphone("geo:52.52,13.405,34.5", "0"), [HERE]),
    "edits: the file is called as another one, accuracy in millimetres": Pitfall(
        text({"timelineEdits": [{"deviceId": "1", "rawSignal": {"signal": SIGNAL}}]}), [HERE],
        measures=(None, 13.0, None, None),
    ),
    "geojson: the time as seconds, and as milliseconds": Pitfall(
        features(feature(spot(), time=1_709_280_840), feature(spot(), time=1_709_280_840_000)),
        [HERE, HERE], times=[TIME, TIME],
    ),
    "geojson: time_long": Pitfall(
        features(feature(spot(), time_long=1_709_280_840_000)), [HERE], times=[TIME]
    ),
    "geojson: coordTimes": Pitfall(
        features(feature({"type": "LineString", "coordinates": [[13.405, 52.52]]},
                         coordTimes=[TIME])), [HERE], times=[TIME],
    ),
    "geojson: a fourth coordinate": Pitfall(
        features(feature({"type": "LineString", "coordinates": [[13.405, 52.52, 34, 1709280840]]})),
        [HERE], times=[TIME],
    ),
    "geojson: no geometry": Pitfall(
        features(feature(None, time=TIME), feature(spot(), time=TIME)), [HERE],
        {"no coordinates": 1},
    ),
    "geojson: no time": Pitfall(
        features(feature(spot()), feature(spot(), time=TIME)), [HERE], {"no time": 1}
    ),
    "owntracks: lines that are no locations": Pitfall(
        (LWT + WAYPOINT + TRANSITION + OWNTRACKS).encode(), [HERE]
    ),
    "owntracks: spaces for tabs": Pitfall(OWNTRACKS.replace("\t", "   ").encode(), [HERE]),
    "owntracks: two lines in one second": Pitfall(
        (OWNTRACKS + OWNTRACKS.replace("13.405", "13.5")).encode(), [HERE, (52.52, 13.5)],
        times=[TIME, TIME],
    ),
    "any: coordinates out of range, or none": Pitfall(
        records(record(latitudeE7=900_000_001), record(latitudeE7=float("nan")), record()), [HERE],
        {"coordinates out of range": 2},
    ),
    "any: no time": Pitfall(records(PLACE, record()), [HERE], {"no time": 1}),
    "any: before 1990": Pitfall(
        records(record(timestamp="1989-12-31T23:59:59Z"), record()), [HERE], {"time before 1990": 1}
    ),
    "any: more than a day ahead": Pitfall(
        records(record(timestamp="2099-01-01T00:00:00Z"), record()), [HERE],
        {"time more than a day ahead": 1},
    ),
    "any: a value that is none": Pitfall(
        records(record(timestamp="yesterday"), record()), [HERE], {"unparsable value": 1}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PITFALLS)
def test_a_pitfall_costs_its_own_points_alone(name: str) -> None:
    pitfall = PITFALLS[name]
    result = read(pitfall.file)
    assert result.error is None
    assert result.places == [pytest.approx(place) for place in pitfall.places]
    assert dict(result.tally.rejected) == pitfall.rejected
    assert result.tally.read == len(pitfall.places) + sum(pitfall.rejected.values())
    if pitfall.times is not None:
        assert result.times == [at(time) for time in pitfall.times]
    if pitfall.measures is not None:
        assert result.points[0][3:] == pitfall.measures
