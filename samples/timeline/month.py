"""Generate a month of an invented person in Berlin: work, evenings, excursions, a trip to Lisbon.

The points, about 28,000, depend only on the last day.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

DAYS = 30
REST = timedelta(minutes=5)
"""Time between two points while the person does not move."""
METRE = 1 / 111_320
"""A metre in degrees of latitude."""
Point = tuple[datetime, float, float]
"""Time in UTC, latitude, longitude."""


@dataclass(frozen=True, slots=True)
class Spot:
    lat: float
    lon: float


HOME, OFFICE, CANTEEN = Spot(52.5412, 13.4127), Spot(52.5031, 13.3294), Spot(52.5056, 13.3215)
FRIENDS, LAKE, POOL = Spot(52.4986, 13.4465), Spot(52.4331, 13.1853), Spot(52.5297, 13.4529)
EXCURSIONS = (
    (Spot(54.1806, 12.0865), Spot(54.1839, 12.0522)),  # Warnemünde
    (Spot(51.3455, 12.3821), Spot(51.3204, 12.3343)),  # Leipzig
    (Spot(51.8656, 13.9675), Spot(51.8907, 13.9289)),  # Lübbenau
    (Spot(52.3919, 13.0672), Spot(52.4042, 13.0385)),  # Potsdam
    (Spot(53.0700, 13.2869), Spot(53.1020, 13.2573)),
)
AIRPORT, LISBON_AIRPORT = Spot(52.3667, 13.5033), Spot(38.7742, -9.1342)
HOTEL, CONFERENCE, RIVERSIDE = (
    Spot(38.7139, -9.1394),
    Spot(38.7681, -9.0940),
    Spot(38.6970, -9.2064),
)
BERLIN, LISBON = ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/Lisbon")


@dataclass(frozen=True, slots=True)
class Leg:
    """A trip to a spot."""

    at: str
    """Departure, in the time zone of the day."""
    to: Spot
    minutes: int
    every: int = 10
    """Seconds between two points."""


def month(last: date) -> Iterator[Point]:
    """Yield the points of the DAYS days that end with `last`, by time."""
    random = Random(str(last))  # noqa: S311 (nothing here is a secret)
    here, now = HOME, datetime.combine(last - timedelta(days=DAYS - 1), time(), BERLIN)
    for number in range(DAYS):
        day = last - timedelta(days=DAYS - 1 - number)
        zone, legs = _plan(number, day, random)
        for leg in legs:
            late = timedelta(minutes=random.randint(-9, 9), seconds=random.randint(0, 59))
            departure = datetime.combine(day, time.fromisoformat(leg.at), zone) + late
            yield from _stay(here, now, departure, random)
            yield from _move(here, departure, leg, random)
            here, now = leg.to, departure + timedelta(minutes=leg.minutes)
    yield from _stay(here, now, datetime.combine(last, time(23, 59), BERLIN), random)


def _plan(number: int, day: date, random: Random) -> tuple[ZoneInfo, list[Leg]]:
    """Return the time zone of the day, and its legs."""
    if number == 12:
        return BERLIN, [
            Leg("07:10", AIRPORT, 50, 10), Leg("09:40", LISBON_AIRPORT, 225, 60),
            Leg("14:30", HOTEL, 25),
        ]  # fmt: skip
    if number in (13, 14):
        return LISBON, [
            Leg("08:40", CONFERENCE, 30), Leg("17:20", HOTEL, 35), Leg("19:00", RIVERSIDE, 30),
            Leg("22:00", HOTEL, 30),
        ]  # fmt: skip
    if number == 15:
        return LISBON, [
            Leg("10:00", LISBON_AIRPORT, 25), Leg("12:30", AIRPORT, 215, 60),
            Leg("16:50", HOME, 50, 10),
        ]  # fmt: skip
    if day.weekday() == 5:
        first, second = EXCURSIONS[day.isocalendar().week % len(EXCURSIONS)]
        return BERLIN, [
            Leg("08:50", first, 110, 15), Leg("11:30", second, 75), Leg("14:40", first, 70),
            Leg("17:10", HOME, 115, 15),
        ]  # fmt: skip
    if day.weekday() == 6:
        return BERLIN, [Leg("13:30", LAKE, 65), Leg("17:00", HOME, 60)]
    legs = [
        Leg("08:15", OFFICE, 28), Leg("12:20", CANTEEN, 9), Leg("13:05", OFFICE, 10),
        Leg("17:40", HOME, 31),
    ]  # fmt: skip
    if evening := random.choice((None, FRIENDS, POOL)):
        legs += [Leg("19:20", evening, 18), Leg("22:10", HOME, 17)]
    return BERLIN, legs


def _stay(spot: Spot, start: datetime, end: datetime, random: Random) -> Iterator[Point]:
    at = start.astimezone(UTC)
    while at < end:
        yield at, *_blurred(spot.lat, spot.lon, 12, random)
        at += REST + timedelta(seconds=random.randint(-20, 20))


def _move(start: Spot, departure: datetime, leg: Leg, random: Random) -> Iterator[Point]:
    way = _way(start, leg.to)
    steps = max(1, leg.minutes * 60 // leg.every)
    begin = departure.astimezone(UTC)
    for step in range(steps):
        along = step / steps * (len(way) - 1)
        before, part = way[int(along)], along % 1
        after = way[int(along) + 1]
        lat = before.lat + (after.lat - before.lat) * part
        lon = before.lon + (after.lon - before.lon) * part
        yield begin + timedelta(seconds=step * leg.every), *_blurred(lat, lon, 4, random)


@cache
def _way(start: Spot, end: Spot) -> list[Spot]:
    """Return a route with bends like a road. It is the same each time and in both directions."""
    if (end.lat, end.lon) < (start.lat, start.lon):
        return _way(end, start)[::-1]
    random = Random(f"{start}{end}")  # noqa: S311
    spots = [start, end]
    for bend in (0.13, 0.12, 0.11, 0.1, 0.09, 0.08):
        finer = []
        for before, after in pairwise(spots):
            aside = random.uniform(-bend, bend)
            flat = math.cos(math.radians(before.lat))
            lat = (before.lat + after.lat) / 2 + aside * (after.lon - before.lon) * flat
            lon = (before.lon + after.lon) / 2 - aside * (after.lat - before.lat) / flat
            finer += [before, Spot(lat, lon)]
        spots = [*finer, end]
    return spots


def _blurred(lat: float, lon: float, metres: float, random: Random) -> tuple[float, float]:
    """Return the position with a random error, like that of a GPS receiver."""
    flat = math.cos(math.radians(lat))
    return (
        round(lat + random.gauss(0, metres) * METRE, 6),
        round(lon + random.gauss(0, metres) * METRE / flat, 6),
    )


def as_gpx(points: Iterator[Point]) -> bytes:
    """Return a GPX file with one point per line."""
    lines = [
        f'<trkpt lat="{lat}" lon="{lon}"><time>{at:%Y-%m-%dT%H:%M:%SZ}</time></trkpt>\n'
        for at, lat, lon in points
    ]
    head = '<gpx version="1.1" creator="Tailrace" xmlns="http://www.topografix.com/GPX/1/1">\n'
    return f"{head}<trk><trkseg>\n{''.join(lines)}</trkseg></trk></gpx>\n".encode()
