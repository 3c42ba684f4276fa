"""The stretches of a day: near which town it was, when, and what the clocks showed there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import groupby
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User

from tailrace.domains.timeline.models import Place
from tailrace.domains.timeline.models.place import cell_of

Located = tuple[datetime, int, int]
"""Time, latitude, longitude: in 1e-7 degrees."""
Named = tuple[str, str]
"""The nearest town and the time zone of a place; each empty if it is not known."""
UNKNOWN: Named = ("", "")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Points that follow each other and are near the same town."""

    town: str
    """Such as `Potsdam (DE)`; empty: it is not known."""
    time_zone: str
    """That of the place; empty: it is not known, and the times are in the reader's."""
    points: int
    first_at: datetime
    last_at: datetime


def stretches_of(user: User, points: Sequence[Located], zone: tzinfo) -> list[Stretch]:
    """Return the stretches of these points, which are in the order of time. Where the time zone of
    a place is not known, times are in `zone`."""
    names = _names(user, points)

    def named(point: Located) -> Named:
        return names.get((cell_of(point[1]), cell_of(point[2])), UNKNOWN)

    return list(_stretches(groupby(points, named), zone))


def time_zones_of(user: User, points: Sequence[Located]) -> list[str]:
    """Return the time zone of the place of each point; empty where it is not known."""
    names = _names(user, points)
    return [names.get((cell_of(lat), cell_of(lon)), UNKNOWN)[1] for _, lat, lon in points]


def _stretches(
    groups: Iterable[tuple[Named, Iterable[Located]]], zone: tzinfo
) -> Iterator[Stretch]:
    for (town, time_zone), group in groups:
        times = [at for at, _, _ in group]
        local = _zone(time_zone)
        yield Stretch(
            town=town,
            time_zone=time_zone if local else "",
            points=len(times),
            first_at=times[0].astimezone(local or zone),
            last_at=times[-1].astimezone(local or zone),
        )


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (LookupError, ValueError):  # a name that this machine's database does not have
        return None


def _names(user: User, points: Iterable[Located]) -> dict[tuple[int, int], Named]:
    """Return town and time zone by cell, as the user's imports and devices have named them."""
    cells = {(cell_of(lat), cell_of(lon)) for _, lat, lon in points}
    near = Place.objects.filter(
        cell_lat__in={lat for lat, _ in cells}, cell_lon__in={lon for _, lon in cells}
    )
    return {
        (lat, lon): (f"{name} ({country})" if name else "", time_zone)
        for places in (
            near.filter(device__user=user),
            near.filter(origin__user=user, origin__visible=True),
        )
        for lat, lon, name, country, time_zone in places.values_list(
            "cell_lat", "cell_lon", "name", "country", "time_zone"
        ).distinct()
    }
