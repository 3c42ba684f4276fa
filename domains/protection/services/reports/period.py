"""The days of a report."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MOST_DAYS = 366
DEFAULT_DAYS = 30
"""Days of a report that is requested without a period."""
EARLIEST = date(2000, 1, 1)
DAY = timedelta(days=1)


class InvalidPeriod(ValueError):
    """There is no report of these days. The message gives the reason and the limits."""


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days, both ends included, in the time zone of the account."""

    first_day: date
    last_day: date
    zone: ZoneInfo

    @property
    def days(self) -> int:
        return (self.last_day - self.first_day).days + 1

    @property
    def start(self) -> datetime:
        return datetime.combine(self.first_day, time(), self.zone)

    @property
    def end(self) -> datetime:
        """The beginning of the day after the last one."""
        return datetime.combine(self.last_day + DAY, time(), self.zone)

    def check(self, today: date) -> "Period":
        """Return the period if it is valid. Raises InvalidPeriod."""
        if self.first_day > self.last_day:
            raise InvalidPeriod(
                f"the first day, {self.first_day}, is after the last day, {self.last_day}"
            )
        if self.days > MOST_DAYS:
            raise InvalidPeriod(
                f"the period has {self.days} days; a report has at most {MOST_DAYS}"
            )
        if self.first_day < EARLIEST:
            raise InvalidPeriod(f"the first day, {self.first_day}, is before {EARLIEST}")
        if self.last_day > today:
            raise InvalidPeriod(
                f"the last day, {self.last_day}, is in the future; today is {today}"
            )
        return self


def last_week(today: date, zone: ZoneInfo) -> Period:
    """Return the seven days before today."""
    return Period(today - 7 * DAY, today - DAY, zone)


def last_month(today: date, zone: ZoneInfo) -> Period:
    """Return the calendar month before today's month."""
    last_day = today.replace(day=1) - DAY
    return Period(last_day.replace(day=1), last_day, zone)
