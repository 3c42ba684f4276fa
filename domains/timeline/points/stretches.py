"""Divide the points of a day into stretches near one town, with their local times."""

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
"""The nearest town and the time zone of a cell; each is empty if it is not known."""
UNKNOWN: Named = ("", "")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive points near the same town."""

    town: str
    """Such as `Potsdam (DE)`; empty if it is not known."""
    time_zone: str
    """The local time zone. Empty if it is not known: then times are in the reader's time zone."""
    points: int
    first_at: datetime
    last_at: datetime


def stretches_of(points: Sequence[Located], names: "Names", zone: tzinfo) -> list[Stretch]:
    """Return the stretches of these points, which must be sorted by time. Times are local, or in
    `zone` where the local time zone is not known."""
    return list(_stretches(groupby(points, names.of), zone))


def time_zones_of(user: User, points: Sequence[Located]) -> list[str]:
    """Return the local time zone of each point, or "" where it is not known."""
    names = Names(user, points)
    return [names.of(point)[1] for point in points]


class Names:
    """The nearest towns and the time zones of some points of the user."""

    def __init__(self, user: User, points: Iterable[Located]) -> None:
        self._names = _names(user, points)

    def of(self, point: Located) -> Named:
        """Return town and time zone of one of the points; each is empty if it is not known."""
        return self._names.get((cell_of(point[1]), cell_of(point[2])), UNKNOWN)

    def local(self, point: Located, zone: tzinfo) -> datetime:
        """Return the time of one of the points in its local time zone, or else in `zone`."""
        return point[0].astimezone(_zone(self.of(point)[1]) or zone)


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
    except (LookupError, ValueError):  # the time zone database of this machine lacks the name
        return None


def _names(user: User, points: Iterable[Located]) -> dict[tuple[int, int], Named]:
    """Return town and time zone by cell, from the cells of the user's imports and devices."""
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
