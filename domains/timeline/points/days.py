"""Read a timeline by days in the reader's time zone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from django.contrib.auth.models import User
from django.db.models import Count, Max, Min, Q
from django.db.models.functions import TruncDate

from tailrace.domains.timeline.models import Device, Point
from tailrace.domains.timeline.models.point import PointQuerySet

FIRST_DAY, LAST_DAY = date(1990, 1, 2), date(9000, 1, 1)
MAX_DAYS = 366
"""Maximum days per request."""


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    points: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Period:
    """A time range that begins and ends at the start of a day; `end` is excluded."""

    start: datetime
    end: datetime


def period(first: date, last: date, zone: tzinfo) -> Period:
    """Return the time range from the start of `first` to the end of `last`. Raises ValueError if
    the range is too long or outside FIRST_DAY to LAST_DAY."""
    if not FIRST_DAY <= first <= last <= LAST_DAY:
        raise ValueError(
            f"the days must be between {FIRST_DAY} and {LAST_DAY}, and the first not after the last"
        )
    if (last - first).days >= MAX_DAYS:
        raise ValueError(f"at most {MAX_DAYS} days at once")
    start = datetime.combine(first, time(), zone)
    end = datetime.combine(last + timedelta(days=1), time(), zone)
    return Period(start.astimezone(UTC), end.astimezone(UTC))


def days_of(user: User, within: Period, zone: tzinfo) -> list[Day]:
    """Return the days that have points, in ascending order."""
    points = Point.objects.visible_to(user).between(within.start, within.end)
    rows = (
        points.annotate(day=TruncDate("recorded_at", tzinfo=zone))
        .values("day")
        .annotate(points=Count("*"), first_at=Min("recorded_at"), last_at=Max("recorded_at"))
        .order_by("day")
    )
    return [Day(**row) for row in rows]


def newest_time(user: User) -> datetime | None:
    """Return the time of the user's last visible point, or None."""
    latest = [
        at
        for device in Device.objects.visible().filter(user=user)
        if (at := _newest_of(Point.objects.visible_to(user).filter(device=device)))
    ]
    return max(latest, default=None)


def _newest_of(points: PointQuerySet) -> datetime | None:
    return points.order_by("-recorded_at").values_list("recorded_at", flat=True).first()


def in_order(points: PointQuerySet, chunk: int = 5000) -> Iterator[Point]:
    """Yield the points of one device by time. They are read in chunks without a long
    transaction."""
    ordered = points.by_time()
    rows = list(ordered[:chunk])
    while rows:
        yield from rows
        if len(rows) < chunk:
            return
        last = rows[-1]
        at, place = last.recorded_at, last.file_order or 0
        later = Q(lon__gt=last.lon) | Q(lon=last.lon, lat__gt=last.lat)
        later = Q(recorded_at__gt=at) | Q(place__gt=place) | Q(later, place=place)
        rows = list(ordered.filter(later, recorded_at__gte=at)[:chunk])
