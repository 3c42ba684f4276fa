import json

import pytest

from tests.timeline.formats.reading import at, read


def test_semantic_history() -> None:
    result = read("synthetic/2021_JANUARY-semantic.json")

    assert result.formats == ["google_semantic"]
    assert result.places == [
        (52.52, 13.405),  # where the way began
        (52.522, 13.407),  # a point of the raw path, which has a time and an accuracy
        (52.53, 13.415),
        (52.53, 13.415),  # the beginning and the end of a visit
        (52.53, 13.415),
    ]
    assert result.points[1][4] == 12
    assert result.times[2] == at("2021-01-02T08:30:00.123Z")
    assert dict(result.tally.rejected) == {"no time": 1, "no coordinates": 2}


def test_a_visit_within_a_visit_is_read_as_a_visit() -> None:
    times = {"startTimestamp": "2021-01-02T08:00:00Z", "endTimestamp": "2021-01-02T09:00:00Z"}
    path = [{"latE7": 10_000_000, "lngE7": 20_000_000, "timestampMs": "1609576200000"}]
    child = {
        "location": {"latitudeE7": 30_000_000, "longitudeE7": 40_000_000},
        "duration": times,
        "simplifiedRawPath": {"points": path},
    }
    result = read(
        json.dumps({"timelineObjects": [{"placeVisit": {"childVisits": [child]}}]}).encode()
    )
    assert result.places == [(3, 4), (1, 2), (3, 4)]
    assert result.times[1] == at("2021-01-02T08:30:00Z")


def test_timeline_of_android() -> None:
    result = read("synthetic/Timeline-android.json")

    assert result.formats == ["google_timeline"]
    assert result.times[0] == at("2024-03-01T07:14:00Z")
    assert result.places[0] == (52.52, 13.405)
    assert result.points[-1] == (
        at("2024-03-01T07:14:03Z"),
        134050000,
        525200000,
        88.4,
        13,
        0,
        None,
    )
    assert (len(result.points), result.tally.read) == (6, 6)


@pytest.mark.parametrize("key", ["LatLng", "latLng"])
def test_raw_signals_without_segments(key: str) -> None:
    position = {key: "-52.52°, -0.5°", "timestamp": "2024-03-01T08:14:03.000+01:00"}
    content = {"semanticSegments": None, "rawSignals": [{"position": position}]}
    result = read(json.dumps(content).encode())
    assert result.places == [(-52.52, -0.5)]


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ("52.52°; 13.405°", "unparsable value"),
        ("", "no coordinates"),
        (None, "no coordinates"),
        (17, "unparsable value"),
        ("52.52°, 213.405°", "coordinates out of range"),
    ],
)
def test_a_bad_point_of_a_path(point: object, reason: str) -> None:
    path = [{"point": point, "time": "2024-03-01T08:14:00Z"}, {"point": "1°, 2°", "time": ""}]
    result = read(json.dumps({"semanticSegments": [{"timelinePath": path}]}).encode())
    assert dict(result.tally.rejected) == {reason: 1, "no time": 1}


def test_points_within_a_minute_are_all_kept() -> None:
    path = [{"point": f"1°, {n}°", "time": "2024-03-01T08:14:00Z"} for n in range(5)]
    result = read(json.dumps({"semanticSegments": [{"timelinePath": path}]}).encode())
    assert len(set(result.points)) == 5


def test_location_history_of_an_iphone() -> None:
    result = read("synthetic/location-history-ios.json")

    assert result.formats == ["google_location_history"]
    assert result.places[0] == (52.52, 13.405)
    # Minutes from the beginning of the path, also before it; a third value is the altitude's.
    assert result.times[-2:] == [at("2018-12-27T10:14:00Z"), at("2018-12-27T09:59:00Z")]
    assert result.places[-1] == (52.606, 13.371)
    assert (len(result.points), result.tally.read) == (6, 6)


@pytest.mark.parametrize(
    ("minutes", "reason"),
    [("soon", "unparsable value"), (None, "no time"), ("NaN", "unparsable value")],
)
def test_a_bad_offset_costs_one_point(minutes: object, reason: str) -> None:
    path = [{"point": "geo:1,2", "durationMinutesOffsetFromStartTime": m} for m in (0, minutes)]
    item = {"startTime": "2018-12-27T10:00:00.000Z", "timelinePath": path}
    result = read(json.dumps([item]).encode())
    assert (len(result.points), dict(result.tally.rejected)) == (1, {reason: 1})


def test_timeline_edits() -> None:
    result = read("synthetic/Timeline-takeout-timelineEdits.json")

    assert result.formats == ["google_timeline_edits"]
    assert result.points == [
        (at("2024-02-17T05:54:00.932Z"), 134050000, 525200000, 40.0, 13.0, None, None)
    ]


def test_an_edit_without_a_position_is_passed_over() -> None:
    edits = [{"placeAggregates": {}}, {"rawSignal": {"signal": {"wifiScan": {}}}}, None, 3]
    result = read(json.dumps({"timelineEdits": edits}).encode())
    assert (result.tally.read, result.error) == (0, None)


@pytest.mark.parametrize(
    "key", ["timelineObjects", "semanticSegments", "rawSignals", "timelineEdits"]
)
def test_items_of_any_shape_stop_nothing(key: str) -> None:
    shapes = [1, None, "x", [], [1], {}, {"visit": 1}, {"activity": {"start": 5}}]
    shapes += [{"timelinePath": {"a": 1}}, {"placeVisit": []}, {"position": "x"}, {"visit": []}]
    result = read(json.dumps({key: shapes}).encode())
    assert result.error is None
    assert result.points == []
