"""The stays and moves of a day, as rows of a page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo

from tailrace.domains.timeline.imports.sample import thinned
from tailrace.domains.timeline.points.days import Period
from tailrace.domains.timeline.points.movement import (
    STAY_METRES,
    Movement,
    metres_between,
    movements_of,
)
from tailrace.domains.timeline.points.stretches import Located, Names

MOST_DEVICES, MOST_ROWS = 10, 100
"""Maximum number of devices on the page of a day, and of rows per device."""
STRIP = 1440
"""The width of the strip of a day, in its own units."""


@dataclass(frozen=True, slots=True)
class Row:
    """A stay or a move."""

    is_stay: bool
    title: str
    times: str
    """From when to when, with the duration, and for a move the average speed."""
    start: int
    """Where the row begins on the strip of the day, and how wide it is."""
    width: int
    place: int = 0
    """The number of the place of a stay. Stays at the same place have the same number."""
    lat: float = 0.0
    lon: float = 0.0


@dataclass(slots=True)
class Journey:
    """The rows of one device."""

    device: str
    rows: list[Row]
    metres: float
    left_out: int
    """The number of rows that are not shown."""

    @property
    def distance(self) -> str:
        return distance(self.metres)


@dataclass(slots=True)
class _Places:
    """Numbers of places, which are the same for stays near each other."""

    known: list[Located] = field(default_factory=list)

    def number_of(self, point: Located) -> int:
        for number, place in enumerate(self.known, 1):
            if metres_between(place, point) <= 2 * STAY_METRES:
                return number
        self.known.append(point)
        return len(self.known)


@dataclass(frozen=True, slots=True)
class DayJourneys:
    journeys: Sequence[Journey]
    places: int
    """The number of different places of the stays."""


def journeys_of(
    points: Mapping[str, Sequence[Located]],
    names: Names,
    zone: tzinfo,
    day: date,
    within: Period,
) -> DayJourneys:
    """Return the stays and moves of each device, from its points by time. Times are local, or in
    `zone` where the local time zone is not known."""
    places = _Places()
    journeys = []
    for device, rows in points.items():
        movements = movements_of(rows)
        shown = movements[:MOST_ROWS]
        journeys.append(
            Journey(
                device=device,
                rows=[_row(each, places, names, zone, day, within) for each in shown],
                metres=sum(each.metres for each in movements),
                left_out=len(movements) - len(shown),
            )
        )
    return DayJourneys(journeys, len(places.known))


def by_device(
    rows: Sequence[tuple[datetime, int, int, int]], names: Mapping[int, str]
) -> dict[str, list[Located]]:
    """Return a sample of the points by the name of their device, the devices with the most points
    first. The rows have the id of the device last."""
    counts = Counter(row[3] for row in rows)
    return {
        names.get(device, ""): thinned([row[:3] for row in rows if row[3] == device])
        for device, _count in counts.most_common(MOST_DEVICES)
    }


def clock_time(moment: datetime, day: date) -> str:
    """Return the local time, with the date if the local date is not `day`."""
    text = f"{moment:%H:%M}"
    return text if moment.date() == day else f"{moment.day} {moment:%b}, {text}"


def distance(metres: float) -> str:
    if metres < 950:
        return f"{metres:.0f} m"
    return f"{metres / 1000:.1f} km" if metres < 99_950 else f"{metres / 1000:,.0f} km"


def _row(
    movement: Movement, places: _Places, names: Names, zone: tzinfo, day: date, within: Period
) -> Row:
    first, last = movement.first, movement.last
    times = (
        f"{clock_time(names.local(first, zone), day)} – {clock_time(names.local(last, zone), day)}"
        f" · {_duration(movement.seconds)}"
    )
    start, end = (_on_strip(point[0], within) for point in (first, last))
    width = max(end - start, 1)
    if not movement.is_stay:
        speed = movement.metres / movement.seconds * 3.6 if movement.seconds else 0.0
        title = f"Moved {distance(movement.metres)}"
        return Row(False, title, f"{times}, {speed:.0f} km/h", start, width)
    middle = movement.middle
    town = names.of(middle)[0]
    return Row(
        is_stay=True,
        title=f"Near {town}" if town else f"At {middle[1] / 1e7:.4f}, {middle[2] / 1e7:.4f}",
        times=times,
        start=start,
        width=width,
        place=places.number_of(middle),
        lat=round(middle[1] / 1e7, 5),
        lon=round(middle[2] / 1e7, 5),
    )


def _on_strip(moment: datetime, within: Period) -> int:
    return int(STRIP * ((moment - within.start) / (within.end - within.start)))


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
