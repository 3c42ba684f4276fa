import json
from typing import Any

import pytest

from tests.timeline.formats.reading import at, read

TIME = "2025-01-01T00:00:00Z"


def collection(*features: Any) -> bytes:
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def feature(geometry: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def point(*coordinates: Any, **properties: Any) -> dict[str, Any]:
    return feature({"type": "Point", "coordinates": coordinates}, **properties)


def test_points_and_lines() -> None:
    result = read("synthetic/points.geojson")

    assert result.formats == ["geojson"]
    assert result.points[0] == (
        at("2025-01-24T06:19:29.726Z"), 134050000, 525200000, 150.5, 16.258, None, None,
    )  # fmt: skip
    assert result.points[1][:3] == (1755989844 * 10**6, 134060000, 525210000)
    assert result.points[1][3:5] == (40, 12)
    assert [altitude for _, _, _, altitude, *_ in result.points[2:]] == [None, 35]
    assert result.times[3] == at("2025-01-01T00:00:10Z")
    assert dict(result.tally.rejected) == {"no time": 1, "no coordinates": 1}


@pytest.mark.parametrize("key", ["timestamp", "time", "datetime", "date", "when", "time_long"])
@pytest.mark.parametrize(
    "time",
    [TIME, 1735689600, 1735689600000, "1735689600", 1735689600.0, "2025-01-01T01:00:00+01:00"],
)
def test_a_time_under_any_name_and_of_any_kind(key: str, time: Any) -> None:
    assert read(collection(point(1, 2, **{key: time}))).times == [at(TIME)]


def test_times_of_lines_stand_in_properties_or_in_the_fourth_coordinate() -> None:
    line = {"type": "LineString", "coordinates": [[1, 2, 3], [4, 5]]}
    fourth = {"type": "LineString", "coordinates": [[1, 2, 3, 1735689600], [4, 5, 6, 1735689601]]}
    lines = {"type": "MultiLineString", "coordinates": [line["coordinates"], [[7, 8]]]}
    times = [TIME, "2025-01-01T00:00:01Z"]
    for one in (
        feature(line, coordTimes=times),
        feature(line, coordinateProperties={"times": times}),
        feature(fourth),
    ):
        assert read(collection(one)).times == [at(TIME), at(TIME) + 1_000_000]
    assert len(read(collection(feature(lines, coordTimes=[times, [TIME]]))).points) == 3


def test_a_line_without_times_is_rejected_point_by_point() -> None:
    result = read("geojson/togeojson-gdal.gpx.geojson")
    assert (len(result.points), dict(result.tally.rejected)) == (1, {"no time": 8})


def test_one_feature_may_be_the_whole_file() -> None:
    assert read(json.dumps(point(1, 2, time=TIME)).encode()).places == [(2.0, 1.0)]


def test_a_batch_of_overland() -> None:
    [point] = read("synthetic/overland-batch.json").points
    assert point[3:] == (40, 30, 4, None)


@pytest.mark.parametrize(
    "bad",
    [
        None, 1, "x", {}, {"geometry": None}, {"geometry": {"type": "Point"}},
        point(None, None, time=TIME), point("a", "b", time=TIME), point(time=TIME),
        point(1e309, 2, time=TIME), point({}, [], time=TIME), point(1, 2, time=[]),
        feature({"type": "LineString", "coordinates": [None]}, coordTimes=3),
        point(181, 2, time=TIME), point(1, 2, time=float("nan")),
    ],
)  # fmt: skip
def test_a_bad_feature_costs_one_of_three(bad: Any) -> None:
    good = point(1, 2, time=TIME)
    result = read(collection(good, bad, good))
    assert (len(result.points), result.tally.rejected.total(), result.error) == (2, 1, None)


def test_areas_are_no_points() -> None:
    area = {"type": "Polygon", "coordinates": [[[1, 2], [3, 4], [5, 6], [1, 2]]]}
    assert read(collection(feature(area, time=TIME))).tally.read == 0


def test_one_feature_per_line() -> None:
    line = json.dumps(point(2, 1, time=7)).encode().replace(b"7", b"%d")
    lines = b"\n".join(line % (1_709_280_840 + n) for n in range(3000))
    result = read(lines + b"\nbroken\n\n" + line % 1_709_290_000)
    assert result.formats == ["geojson_lines"]
    assert (len(result.points), result.error) == (3001, None)
    [rejected] = result.tally.first_rejected
    assert (rejected.line, rejected.reason) == (3001, "unparsable value")
    assert "in the middle of a line (line 3,001, " in str(read(lines + b"\n" + line[:50]).error)
