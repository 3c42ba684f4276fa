"""What people reported to location tools, in public: a line for each report, with a small file of
that kind, and what becomes of it here.

The files are made up after the reports. `owner/name#number` is an issue or pull request on GitHub.
"""

import gzip
import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.timeline.formats.reading import at, read
from tests.timeline.formats.test_pitfalls import (
    HERE,
    PLACE,
    POINT,
    TIME,
    Pitfall,
    feature,
    features,
    gpx,
    iphone,
    record,
    records,
    segments,
    spot,
    text,
)


@dataclass(frozen=True)
class Report(Pitfall):
    """A file, what is read of it, and the beginning of the error, if there is one."""

    error: str = ""


MESSAGE = {"_type": "location", "lat": 52.52, "lon": 13.405, "tst": 1709280840, "acc": 16}
LOGGED = {"time": TIME, "provider": "network", "time_long": 1709280840000, "accuracy": 16.258}
VISIT = {
    "startTime": TIME, "endTime": "2024-03-01T09:00:00.000Z",
    "visit": {"hierarchyLevel": "0", "topCandidate": {
        "probability": "0.46", "placeID": "x", "placeLocation": "geo:52.520000,13.405000"}},
}  # fmt: skip
DRIVE = {
    "startTime": TIME, "endTime": "2024-03-01T09:00:00.000Z",
    "activity": {"start": "geo:52.52,13.405", "end": "geo:52.53,13.41",
                 "topCandidate": {"type": "in passenger vehicle", "probability": "0.000000"}},
}  # fmt: skip
MINUTES = [{"point": f"52.52°, {11.6 - n / 100:.2f}°", "time": TIME} for n in range(3)]
MULTIPOINT = {"type": "MultiPoint", "coordinates": [[13.405, 52.52], [13.5, 52.52]]}
GEO_TRACKER = """<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>
<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1"><metadata><name>7 mai 2026</name>
<time>2026-05-07T12:01:18Z</time></metadata><trk><name>7 mai 2026</name><trkseg>"""

REPORTS: dict[str, Report] = {
    "Freika/dawarich#3115 positions of one minute are the wrong way around": Report(
        segments(*MINUTES), [(52.52, 11.6), (52.52, 11.59), (52.52, 11.58)], times=[TIME] * 3
    ),
    "Freika/dawarich#3218 a place twice in a minute, between others": Report(
        segments(MINUTES[0], MINUTES[1], MINUTES[0]), [(52.52, 11.6), (52.52, 11.59), (52.52, 11.6)]
    ),
    "Freika/dawarich#2772 degree signs of another encoding": Report(
        segments({"point": "52.52*, 13.405*", "time": TIME}).replace(b"*", b"\xb0"), [HERE]
    ),
    "Freika/dawarich#45 an export of the phone, not of Takeout": Report(
        segments({"point": "52.52°, 13.405°", "time": "2024-03-01T09:14:00.000+01:00"}), [HERE],
        times=[TIME],
    ),
    "Freika/dawarich#400 semanticSegments, rawSignals and userLocationProfile": Report(
        text({"semanticSegments": [], "rawSignals": [
            {"wifiScan": {"devicesRecords": []}}, {"activityRecord": {"timestamp": TIME}},
            {"position": {"LatLng": "52.52°, 13.405°", "accuracyMeters": 13, "timestamp": TIME}},
        ], "userLocationProfile": {"frequentPlaces": [{"placeLocation": "1°, 2°"}]}}), [HERE],
        measures=(None, 13, None, None),
    ),
    "Freika/dawarich#2587 location-history.json of an iPhone": Report(
        text([VISIT, DRIVE]), [HERE, HERE, HERE, (52.53, 13.41)]
    ),
    "Freika/dawarich#2437 a path of an iPhone in minutes after its beginning": Report(
        iphone("geo:52.520000,13.405000", "57"), [HERE], times=["2024-03-01T09:11:00Z"]
    ),
    "dedicatedcode/reitti#88 location-history.json brings nothing": Report(
        text([{**VISIT, "endTime": "2024-03-01T11:00:00.000+02:00"}]), [HERE, HERE],
        times=[TIME, "2024-03-01T09:00:00Z"],
    ),
    "dedicatedcode/reitti#309 a path of two hours with one point": Report(
        text({"semanticSegments": [{
            "startTime": "2012-11-29T16:00:00.000+00:00",
            "endTime": "2012-11-29T18:00:00.000+00:00",
            "timelinePath": [{"point": "52.52°, 13.405°", "time": "2012-11-29T16:20:00.000Z"}],
        }, {"startTime": TIME, "endTime": TIME, "timelineMemory": {"trip": {}}}]}), [HERE],
        times=["2012-11-29T16:20:00Z"],
    ),
    "mahlernim/google-timeline-visualizer#33 offsets as numbers, and a time that counts": Report(
        text({"semanticSegments": [{"startTime": TIME, "endTime": TIME, "timelinePath": [
            {"point": "52.52°, 13.405°", "durationMinutesOffsetFromStartTime": 10},
            {"point": "52.52°, 13.405°", "durationMinutesOffsetFromStartTime": 10, "time": TIME},
        ]}]}), [HERE, HERE], times=["2024-03-01T08:24:00Z", TIME],
    ),
    "Freika/dawarich#113 Timeline Edits.json of Takeout": Report(
        text({"timelineEdits": [
            {"deviceId": "1", "placeAggregates": {"placeAggregateInfo": []}},
            {"deviceId": "1", "rawSignal": {"signal": {"position": {
                "point": {"latE7": 525_200_000, "lngE7": 134_050_000}, "accuracyMm": 13_000,
                "timestamp": TIME}}}},
        ]}), [HERE], measures=(None, 13.0, None, None),
    ),
    "Freika/dawarich#663 Records.json with nested activities": Report(
        records(record(accuracy=34, activity=[{"timestamp": TIME, "activity": [
            {"type": "UNKNOWN", "confidence": 87}, {"type": "STILL", "confidence": 7}]}])), [HERE],
        measures=(None, 34, None, None),
    ),
    "Freika/dawarich#1252 Records.json without a point": Report(
        records({"deviceTag": 7, "source": "UNKNOWN"}), [], {"no coordinates": 1}
    ),
    "tess1o/geopulse#573 the default JSON of ocat": Report(
        text({"count": 2, "locations": [{"cog": 20, "topic": "owntracks/x/y", **MESSAGE}] * 2}),
        [HERE, HERE], measures=(None, 16, None, 20),
    ),
    "Freika/dawarich#276 the answer of the OwnTracks recorder's API": Report(
        text({"count": 1, "data": [MESSAGE], "status": 200}), [HERE]
    ),
    "dedicatedcode/reitti#557 .rec files": Report(
        f"{TIME}\t*                 \t{json.dumps(MESSAGE)}\n".encode(), [HERE]
    ),
    "Freika/dawarich#464 .rec files with lines that are no locations": Report(
        f'{TIME}\tlwt\t{{"_type":"lwt"}}\n{TIME}\t*\t{{"_type":"card"}}\n'
        f"{TIME}\tevent\t{{\"_type\":\"transition\"}}\n{TIME}\t*\t{json.dumps(MESSAGE)}\n".encode(),
        [HERE],
    ),
    "owntracks/recorder#351 .rec files with spaces for tabs": Report(
        f"{TIME}    *                       {json.dumps(MESSAGE)}\n".encode(), [HERE]
    ),
    "owntracks/recorder#477 messages that were logged, one per line": Report(
        f"{json.dumps(MESSAGE)}\n{json.dumps(MESSAGE)}\n".encode(), [HERE, HERE]
    ),
    "Freika/dawarich#1222 GeoJSON of ocat": Report(
        features(feature(spot(), **MESSAGE, isotst=TIME)), [HERE]
    ),
    "Freika/dawarich#728 GeoJSON of GPSLogger, a comma before each line": Report(
        b'{"type": "FeatureCollection","features": [\n'
        + text(feature(spot(), **LOGGED)) + b"\n," + text(feature(spot(), **LOGGED)) + b"\n]}\n",
        [HERE, HERE], times=[TIME, TIME], measures=(None, 16.258, None, None),
    ),
    "Freika/dawarich#3473 GeoJSON points without a time": Report(
        features(feature(spot()), feature(spot(), time=TIME)), [HERE], {"no time": 1}
    ),
    "Freika/dawarich#249 GeoJSON without any time, and a comma too many": Report(
        features(feature(spot())).replace(b"}]}", b"},]}"), [], {"no time": 1},
        error="This is not valid JSON (line 1, byte ",
    ),
    "tess1o/geopulse#586 MultiPoint of Colota: of its columns, the times are read": Report(
        features(feature(MULTIPOINT, time=[TIME, 1709280841], accuracy=[10, 8])),
        [HERE, (52.52, 13.5)], times=[TIME, "2024-03-01T08:14:01Z"], measures=(None,) * 4,
    ),
    "Freika/dawarich#827 an empty segment of a Garmin device": Report(
        gpx(f"</trkseg><trkseg></trkseg><trkseg/><trkseg>{POINT}"), [HERE]
    ),
    "Freika/dawarich#710 an empty track": Report(
        gpx(f"</trkseg></trk><trk/><trk><name/></trk><trk><trkseg>{POINT}"), [HERE]
    ),
    "Freika/dawarich#1775 GPX without an XML declaration": Report(gpx(POINT, "<gpx>"), [HERE]),
    "Freika/dawarich#1993 GPX with line ends of Windows, and CDATA": Report(
        gpx(f"<name><![CDATA[Sunday <Wine> & Country]]></name>\r\n{POINT}\r\n"), [HERE]
    ),
    "Freika/dawarich#2721 the time of the file is not that of the points": Report(
        f"{GEO_TRACKER}{POINT}</trkseg></trk></gpx>".encode(), [HERE], times=[TIME]
    ),
    "Freika/dawarich#3046 a track of gpx.studio without times": Report(
        gpx('<trkpt lat="1" lon="2"><ele>3</ele></trkpt>' + POINT), [HERE], {"no time": 1}
    ),
    "organicmaps/organicmaps#9365 times that some points lack": Report(
        gpx(POINT + POINT.replace(f"<time>{TIME}</time>", "") + POINT), [HERE] * 2, {"no time": 1}
    ),
    "OpenTracksApp/OpenTracks#1236 times that are null": Report(
        gpx(POINT + POINT.replace(TIME, "null")), [HERE], {"unparsable value": 1}
    ),
    "OpenCPN/OpenCPN#4675 a segment around each point": Report(
        gpx(f"</trkseg><trkseg>\n{POINT}\n</trkseg>\n<trkseg>\n{POINT}\n"), [HERE, HERE]
    ),
    "activityworkshop/GpsPrune#38 blank lines before the XML declaration": Report(
        b"\n" * 12 + b'<?xml version="1.0" encoding="UTF-8"?>\n' + gpx(POINT), [HERE]
    ),
    "tumic0/GPXSee#322 spaces before the XML declaration, by Strava": Report(
        b'          <?xml version="1.0" encoding="UTF-8"?>' + gpx(POINT), [HERE]
    ),
    "open-wanderer/wanderer#128 an attribute twice": Report(
        gpx(POINT, '<gpx xmlns="a" xmlns="a">'), [],
        error="This is not valid XML: an attribute occurs twice in a tag (line 1, byte ",
    ),
    "osmandapp/OsmAnd#6809 “&” in a name": Report(
        gpx(f"{POINT}\n</trkseg></trk><wpt><name>Park & Ride</name></wpt><trk><trkseg>{POINT}"),
        [HERE],
        error="This is not valid XML: “&” must be written as “&amp;” (line 2, byte ",
    ),
    "labexp/osmtracker-android#327 “&” in the name of the file: nothing stands before": Report(
        gpx(POINT, "<gpx>\n<metadata><name>some & name</name></metadata>"), [],
        error="This is not valid XML: “&” must be written as “&amp;” (line 2, byte ",
    ),
    "OpenSAK-Org/OpenSAK#845 a reference to a character that XML does not allow": Report(
        gpx(f"{POINT}\n<desc>font-family:&#xFFFF;</desc>"), [HERE],
        error="This is not valid XML: the number after “&#” is no character (line 2, byte ",
    ),
    "jenetics/jpx#151 coordinates with an exponent": Report(
        gpx(POINT.replace("13.405", "-3.1E-4")), [(52.52, -0.00031)]
    ),
    "tyrasd/overpass-turbo#588 -2e-7": Report(
        gpx(POINT.replace("13.405", "-2e-7")), [(52.52, -2e-7)]
    ),
    "osmandapp/OsmAnd#4664 an altitude with an exponent": Report(
        gpx(POINT.replace("<time>", "<ele>-6.5537536E-4</ele><time>")), [HERE],
        measures=(-6.5537536e-4, None, None, None),
    ),
    "jenetics/jpx#81 GPX without white space": Report(gpx(POINT * 3), [HERE] * 3),
    "erik/derive#74 .gpx.gz of Strava": Report(gzip.compress(gpx(POINT)), [HERE]),
    "SamR1/FitTrackee#87 a file that was not closed": Report(
        gpx(POINT)[:-20], [HERE], error="The file ends in the middle (line 1, byte "
    ),
    "Freika/dawarich#538 a web page for Timeline.json": Report(
        b"<html><body>\n<br>\n</body>\n</html>", [], error="This is a web page"
    ),
    "Freika/dawarich#3120 KML of Traccar": Report(
        b'<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"/>', [],
        error="KML and TCX files are not supported: export the track as GPX or GeoJSON.",
    ),
    "Freika/dawarich#1187 Semantic Location History with points without times": Report(
        text({"timelineObjects": [{"activitySegment": {
            "duration": {"startTimestamp": TIME, "endTimestamp": TIME},
            "startLocation": PLACE, "endLocation": PLACE,
            "simplifiedRawPath": {"points": [{"latE7": 1, "lngE7": 2}]},
        }}]}), [HERE, HERE], {"no time": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_holds(name: str) -> None:
    report = REPORTS[name]

    result = read(report.file)

    assert result.places == report.places
    assert dict(result.tally.rejected) == report.rejected
    if report.times is not None:
        assert result.times == [at(time) for time in report.times]
    if report.measures is not None:
        assert result.points[0][3:] == pytest.approx(report.measures)
    error: Any = str(result.error or "")
    assert error.startswith(report.error)
    assert bool(error) == bool(report.error)


def test_each_report_names_its_thread() -> None:
    for name in REPORTS:
        repository, _, rest = name.partition("#")
        assert repository.count("/") == 1, name
        assert rest.split()[0].isdecimal(), name
