"""Upload photos at distances and times from a point, and check what became of them."""

import math
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from tailrace.db import clock
from tailrace.domains.photos.geometry import sphere
from tailrace.domains.photos.geometry.grid import EARTH_RADIUS
from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.uploads.create_photo import create_photo

Point = tuple[float, float]
SQUARE: Point = (52.5200, 13.4050)
_keys = count()


def away(start: Point, metres: float, bearing: float = 90.0) -> Point:
    """Return the point that far from there, by the formula of the sphere; bearing in degrees."""
    a, b, c = math.radians(start[0]), math.radians(start[1]), math.radians(bearing)
    d = metres / EARTH_RADIUS
    to = math.asin(math.sin(a) * math.cos(d) + math.cos(a) * math.sin(d) * math.cos(c))
    east = b + math.atan2(
        math.sin(c) * math.sin(d) * math.cos(a), math.cos(d) - math.sin(a) * math.sin(to)
    )
    return math.degrees(to), (math.degrees(east) + 180) % 360 - 180


def metres(a: Point, b: Point) -> float:
    """Return the great circle's distance, by the haversine formula."""
    p, q = math.radians(a[0]), math.radians(b[0])
    h = math.sin((q - p) / 2) ** 2
    h += math.cos(p) * math.cos(q) * math.sin(math.radians(b[1] - a[1]) / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(math.sqrt(h))


def upload_photo(
    at: Point = SQUARE, minutes: float = 0, now: datetime | None = None, **more: Any
) -> Photo:
    """Upload a photo taken there, so many minutes from now."""
    taken_at = (now or clock.now()) + timedelta(minutes=minutes)
    key = f"test/{next(_keys)}"
    user = more.pop("user", None)
    return create_photo(user, lat=at[0], lon=at[1], taken_at=taken_at, storage_key=key, **more)


def upload_photos(
    number: int, at: Point = SQUARE, spread: float = 1, minutes: float = 0
) -> list[Photo]:
    """Upload that many photos on a circle of `spread` metres, a millisecond apart."""
    return [
        upload_photo(away(at, spread, 360 * n / number), minutes + n / 60_000)
        for n in range(number)
    ]


def count_by_state() -> dict[str, int]:
    """Return how many photos there are by state."""
    counts: dict[str, int] = {}
    for state in Photo.objects.values_list("state", flat=True):
        counts[state] = counts.get(state, 0) + 1
    return counts


def assert_consistent(gathering: Gathering) -> None:
    """Assert that the gathering's figures are exactly those of its photos."""
    photos = list(Photo.objects.filter(gathering=gathering))
    total = (sum(p.x for p in photos), sum(p.y for p in photos), sum(p.z for p in photos))
    assert gathering.photo_count == len(photos)
    assert (gathering.sum_x, gathering.sum_y, gathering.sum_z) == total
    assert (gathering.lat, gathering.lon) == sphere.degrees(total)
    assert gathering.first_photo_at == min(p.taken_at for p in photos)
    assert gathering.last_photo_at == max(p.taken_at for p in photos)
    farthest = max(metres((gathering.lat, gathering.lon), (p.lat, p.lon)) for p in photos)
    assert abs(gathering.radius - farthest) < 0.01


def all_rows() -> tuple[Any, ...]:
    """Return all that is stored of photos and gatherings, to compare before and after."""
    return (
        list(Photo.objects.order_by("pk").values()),
        list(Gathering.objects.order_by("pk").values()),
    )
