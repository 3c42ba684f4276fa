"""Points that are read all at once are those that are read one by one."""

import json
from itertools import product
from typing import Any

import pytest

from tests.timeline.formats.reading import read

UTC = "2022-01-12T17:18:24Z"
TIMES = [
    UTC, "2022-01-12T17:18:24.190Z", "2022-01-12T17:18:24+01:00", "2022-01-12T17:18:24.190-08:00",
    "2022-01-12T17:18:24", "20220112T171824Z", "20220112", "2022-01-12", f" {UTC}", "1735689600",
    "1999-12-31T23:59:60Z", "x", "", None, 1735689600, 1735689600000, 17, 1735689600.5, True, [],
    "2027-01-01T00:00:00Z", "2022-01-12T17:18:24.190+23:59", "2022-01-12T17:18:24.190+24:00",
    "2022-01-12T00:00:00.000+05:45", "2022-01-12T17:18:24.190+01:60",
    "2022-01-12T17:18:24.19a+01:00",
]  # fmt: skip
NUMBERS = [0, 1, -7.5, 89, 525_200_000, 4_294_967_295, 200, "12.5", "1,5", "NaN", True, None, 1e309]
MEASURES = [0, 12.5, -1, 1e9, "12.5", None, True, float("nan"), [], 10**400]
PAIRS = [
    "52.5°, 13.4°", "-52.5°, -0.4°", "geo:1,2", "1,2", "1.°, 2°", "1°, 2°\n1°, 2°", "91°, 2°",
    "1234°, 2°", "", None, 5, "1°, 2°, 3°", " 1°, 2°", "1e5, 2", "٣°, 2°", "1°, 2°\n",
    "1°, 2.°", "52.5200066°, -13.4049540°", "-0.0000001°, 0.0000000°", "52.5200066°, 13.40495401°",
    "1.0000000°, 2.0000000°\n3.0000000°, 4.0000000°", "٣.0000000°, 2.0000000°",
    "91.0000000°, 2.0000000°", "1.0000000°, 2.0000000°\n",
]  # fmt: skip


def records(items: list[Any]) -> bytes:
    return json.dumps({"locations": items}).encode()


def signals(items: list[Any]) -> bytes:
    return json.dumps({"rawSignals": [item and {"position": item} for item in items]}).encode()


def features(items: list[Any]) -> bytes:
    listed = [
        item
        and {
            "geometry": {"type": "Point", "coordinates": item["lonlat"]},
            "properties": {name: value for name, value in item.items() if name != "lonlat"},
        }
        for item in items
    ]
    return json.dumps({"type": "FeatureCollection", "features": listed}).encode()


def lines(items: list[Any]) -> bytes:
    texts = [f"{UTC}\t*\t{json.dumps(item)}" if item else "bad" for item in items]
    return "\n".join([f'{UTC}\t*\t{{"_type":"lwt"}}', *texts, ""]).encode()


RECORD = {"latitudeE7": 1, "longitudeE7": 2, "timestamp": UTC}
SIGNAL = {"LatLng": "1°, 2°", "timestamp": UTC, "altitudeMeters": 5.5}
FEATURE = {"lonlat": [1.5, 2.5, 3.5], "time": UTC, "accuracy": 5}
LINE = {"_type": "location", "lat": 1.5, "lon": 2.5, "tst": 1735689600, "alt": 5}
COORDINATES = [[1, 2], [1, 2, None], [1, 2, "3"], [1, 2, 3, 1735689600], [1], [], ["1", 2], None]
FORMATS: dict[str, tuple[Any, list[dict[str, Any]], dict[str, list[Any]]]] = {
    "records": (
        records,
        [RECORD, RECORD | {"altitude": 5, "velocity": 1.5}],
        {
            "latitudeE7": NUMBERS, "longitudeE7": NUMBERS, "timestamp": TIMES, "timestampMs": TIMES,
            "altitude": MEASURES, "accuracy": MEASURES, "velocity": MEASURES, "heading": MEASURES,
        },
    ),
    "signals": (
        signals,
        [SIGNAL, SIGNAL | {"latLng": "5°, 6°"}, SIGNAL | {"LatLng": "1.5000000°, 2.0000000°"}],
        {
            "LatLng": PAIRS, "latLng": PAIRS, "timestamp": TIMES, "altitudeMeters": MEASURES,
            "accuracyMeters": MEASURES, "speedMetersPerSecond": MEASURES,
        },
    ),
    "features": (
        features,
        [FEATURE, FEATURE | {"lonlat": [1, 2, None]}, FEATURE | {"lonlat": [1, 2], "ele": 7}],
        {
            "lonlat": COORDINATES, "time": TIMES, "timestamp": TIMES, "accuracy": MEASURES,
            "altitude": MEASURES, "ele": MEASURES, "speed": MEASURES, "heading": MEASURES,
        },
    ),
    "lines": (
        lines,
        [LINE],
        {
            "_type": ["lwt", 1], "lat": NUMBERS, "lon": NUMBERS, "tst": TIMES, "alt": MEASURES,
            "acc": MEASURES, "vel": MEASURES, "cog": MEASURES,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_points_are_the_same_together_and_one_by_one(name: str) -> None:
    """One bad item, here the last, makes a reader look at each."""
    content_of, usual, odd = FORMATS[name]
    lists = [[one] * 2 for one in usual]
    for one, (key, values) in product(usual, odd.items()):
        lists.append([one, {k: v for k, v in one.items() if k != key or k == "lonlat"}])
        for value in values:
            lists += [[one, one | {key: value}], [one | {key: value}] * 2]

    for items in lists:
        together, each = read(content_of(items)), read(content_of([*items, None]))
        rejected = together.tally.rejected.total()

        assert repr(together.points) == repr(each.points), items
        assert together.tally.first_rejected == each.tally.first_rejected[:rejected]
        assert each.tally.rejected.total() - rejected == (name != "signals")
