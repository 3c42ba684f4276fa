"""GeoJSON features longer than one value may be: read piece by piece, in bounded memory."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tailrace.domains.timeline.imports.files.parsing import held_lists, json_stream
from tailrace.domains.timeline.imports.files.parsing.file_errors import LimitExceeded, Malformed
from tailrace.domains.timeline.imports.files.parsing.held_lists import MOST_VALUES
from tests.timeline.formats.reading import read

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "platform" / "timeline.md"
COUNT = 5000
LIMIT = 100_000
TIMES = [1_735_689_600_000 + n * 1000 for n in range(COUNT)]


@pytest.fixture(autouse=True)
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of half a megabyte do what those of 50 MB do."""
    monkeypatch.setattr(json_stream, "ITEM_LIMIT", LIMIT)
    monkeypatch.setattr(json_stream, "CHUNK", 8192)


def positions(*more: Any) -> list[list[Any]]:
    random_ = random.Random(3)
    return [
        [round(random_.uniform(-180, 180), 13), round(random_.uniform(-90, 90), 13), *more]
        for _ in range(COUNT)
    ]


def line(positions: list[Any], kind: str = "LineString", **properties: Any) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": positions}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def points_of(feature: dict[str, Any]) -> tuple[list[Any], dict[str, int]]:
    """Read the feature once as it is and once in pieces that are short enough."""
    geometry, properties = feature["geometry"], feature["properties"]
    step = COUNT // 10
    pieces = []
    for start in range(0, COUNT, step):
        cut = slice(start, start + step)
        times = {key: values[cut] for key, values in properties.items()}
        pieces.append(line(geometry["coordinates"][cut], geometry["type"], **times))
    result = read(collection(*pieces))
    return result.points, dict(result.tally.rejected)


def collection(*features: Any) -> bytes:
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def in_another_order(feature: dict[str, Any]) -> dict[str, Any]:
    geometry = dict(reversed(feature["geometry"].items()))
    return {"geometry": geometry, "properties": feature["properties"], "type": "Feature"}


@pytest.mark.parametrize(
    "feature",
    [
        line(positions(), coordTimes=TIMES),
        line(positions(35.5), "MultiPoint", times=[*TIMES[:-7], *[None] * 7]),
        line(positions(None, 1_735_689_600)),
        line([*positions()[:-2], None, ["x", "y"]], coordTimes=TIMES),
        line([[place] for place in positions()], "MultiLineString", times=[[at] for at in TIMES]),
        line(positions(), "MultiPoint", time=TIMES),
    ],
    ids=["line", "points", "fourth coordinate", "bad positions", "many lines", "columns"],
)
def test_a_long_feature_is_read_as_short_ones_are(feature: dict[str, Any]) -> None:
    points, rejected = points_of(feature)
    assert len(points) + sum(rejected.values()) == COUNT
    small = line([[1, 2]], coordTimes=TIMES[:1])
    other = in_another_order(feature)
    for file, more in (
        (collection(feature), 0),
        (collection(other), 0),
        (collection(small, feature, other, small), COUNT + 2),
        (json.dumps(feature).encode(), 0),
        (json.dumps(other).encode(), 0),
    ):
        assert len(file) > LIMIT
        result = read(file)
        assert result.error is None
        assert result.tally.read == COUNT + more
        if not more:
            assert (result.points, dict(result.tally.rejected)) == (points, rejected)


def test_a_long_feature_that_is_cut_is_staged_up_to_there() -> None:
    feature = line(positions(), coordTimes=TIMES)
    for file in (collection(feature), json.dumps(feature).encode()):
        result = read(file[:-COUNT])
        assert isinstance(result.error, Malformed)
        assert COUNT * 0.9 < len(result.points) < COUNT
        assert result.points == read(file).points[: len(result.points)]


def test_odd_positions_are_held_as_they_are() -> None:
    deep: Any = 1
    for _ in range(210):
        deep = [deep]
    deeper = [[[[deep]]]] * 5 + [deep] * 5
    for _ in range(60):
        deeper = [deeper]
    odd = [[10**30, 1], ["\ud800", 1], deep, deeper, [float("nan"), 1], [1, 10**400], ["é", -0.0]]
    feature = line([*positions()[: -len(odd)], *odd], coordTimes=TIMES)
    points, rejected = points_of(feature)
    assert sum(rejected.values()) == len(odd)
    result = read(collection(in_another_order(feature)))
    assert (result.error, result.points, dict(result.tally.rejected)) == (None, points, rejected)


def test_other_lists_and_long_values_of_a_feature_are_passed_over() -> None:
    feature = line(positions(), coordTimes=TIMES, name="x" * 5000, heart=list(range(40_000)))
    result = read(collection(feature))
    assert (len(result.points), result.error) == (COUNT, None)


def test_a_line_that_memory_does_not_hold_is_refused_with_the_way_out(monkeypatch) -> None:
    monkeypatch.setattr(held_lists, "MOST_BYTES", 50_000)
    result = read(collection(line([[1, 2]], coordTimes=TIMES[:1]), line(positions())))
    assert isinstance(result.error, LimitExceeded)
    assert "A line has too many points" in str(result.error)
    assert "split it up (line 1, byte " in str(result.error)
    assert len(result.points) == 1


def test_an_area_or_a_point_may_be_long_too() -> None:
    point = line([1, 2], "Point", time=TIMES[0], name="x" * 2 * LIMIT)
    assert "longer than 0 MB" in str(read(collection(point)).error)
    point["properties"] = {"time": TIMES[0], "heart": [9] * LIMIT}
    assert read(collection(point, point)).places == [(2.0, 1.0)] * 2
    assert read(collection(line([positions()], "Polygon"))).tally.read == 0


def test_a_line_of_more_points_than_the_docs_say_is_refused_before_it_is_read() -> None:
    """Points that pack well, so that the number of them decides."""
    points = b",".join([b"[1,2,3,1709280840]"] * (MOST_VALUES + 1))
    result = read(collection(line(["points"])).replace(b'"points"', points))
    assert isinstance(result.error, LimitExceeded)
    assert "the limit is 1,500,000): split it up (line 1, byte " in str(result.error)
    assert "more than 1,500,000 points" in DOCS.read_text()
