"""Convert single values of location files: times, coordinates, measures.

For unusable times and coordinates, also of a wrong type, the functions raise ValueError, so that a
format rejects one point and continues. For unusable measures they return None.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite

from tailrace.domains.timeline.points.points import (
    NO_COORDINATES,
    NO_TIME,
    OUT_OF_RANGE,
    SECOND,
    UNPARSABLE,
)

LIMITS = {
    "altitude": (-20_000.0, 100_000.0),
    "accuracy": (0.0, 50_000_000.0),
    "speed": (0.0, 20_000.0),
    "course": (0.0, 360.0),
}
"""The bounds of the measures of a point: metres above sea level (in flights and in mines), metres,
metres per second, degrees from north."""
Measures = tuple[float | None, float | None, float | None, float | None]
"""Altitude, accuracy, speed and course."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_DEGREES = r"(-?\d{1,3}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,2})?)[\s°Â\udcb0\udcc2]*"
"""Degrees. The sign ° may be in another encoding: then its bytes are single surrogates."""
_LAT_LON = re.compile(rf"\s*(?:geo:)?\s*{_DEGREES},\s*{_DEGREES}(?:,|$)", re.ASCII)
_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*", re.ASCII)
_RARE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](?:(24):00(?::00(?:[.,]0+)?)?|(\d\d:\d\d):60([.,]\d+)?)"
    r"(\s*(?:Z|[-+][\d:]+)?)",
    re.ASCII,
)
"""A time at the end of a day (24:00), or in a leap second (:60)."""


class _Minutes(dict[str, int]):
    """A cache of minutes, such as "2024-03-01T08:14:" in UTC, as microseconds since 1970. Most
    points share their minute with others. Raises ValueError for an invalid minute."""

    def __missing__(self, minute: str) -> int:
        if len(minute) != 17 or minute[16] != ":" or minute[11:13] == "24":
            raise ValueError("not a minute")
        if len(self) >= 10_000:
            self.clear()
        self[minute] = microseconds = iso_time(f"{minute}00+00:00")
        return microseconds


class _Fractions(dict[str, int]):
    """A cache of what follows the whole second, such as "250Z" or "000+01:00": microseconds to add
    to a time that was read as if it were in UTC. Raises ValueError for anything else."""

    def __missing__(self, text: str) -> int:
        if not _FRACTION.fullmatch(text):
            raise ValueError("not milliseconds and a zone")
        if len(self) >= 10_000:
            self.clear()
        self[text] = microseconds = iso_time(f"1970-01-02T00:00:00.{text}") - 86_400 * SECOND
        return microseconds


_minutes = _Minutes()
_fractions = _Fractions()
_FRACTION = re.compile(r"\d{3}(?:Z|[-+]\d\d:\d\d)", re.ASCII)
_SECONDS = {f"{second:02d}Z": second * SECOND for second in range(60)}
_WHOLE_SECONDS = {f"{second:02d}.": second * SECOND for second in range(60)}


def iso_time(text: object) -> int:
    """Return an ISO 8601 time as microseconds since 1970. A time without a zone is in UTC. A leap
    second is the second after it."""
    if not isinstance(text, str):
        raise ValueError("not a string")
    stripped = text.strip()
    if stripped.endswith("z"):
        stripped = f"{stripped[:-1]}Z"
    rare = _RARE_TIME.fullmatch(stripped)
    if rare is not None:
        return _rare_time(*rare.groups())
    moment = datetime.fromisoformat(stripped)
    return microseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _rare_time(day: str, midnight: str | None, minute: str, fraction: str | None, zone: str) -> int:
    """Return the time `24:00`, which begins the next day, or a leap second, which is the last
    second of a month in UTC."""
    if midnight:
        return iso_time(f"{day}T00:00{zone}") + 86_400 * SECOND
    time = iso_time(f"{day}T{minute}:59{fraction or ''}{zone}") + SECOND
    following = EPOCH + time * MICROSECOND
    if (following.day, following.hour, following.minute, following.second) != (1, 0, 0, 0):
        raise ValueError("not the last second of a month")
    return time


def microseconds(moment: datetime) -> int:
    """Return microseconds since 1970. Raises TypeError for a time without a zone."""
    return (moment - EPOCH) // MICROSECOND


def iso_times(texts: Sequence[str], read: Callable[[object], int] | None = None) -> list[int]:
    """`read` of each text; the default is `iso_time`. For texts that `iso_time` can read, `read`
    must return the same."""
    for read_uniform in (_times_in_seconds, _times_in_milliseconds, _times_in_any_zone):
        try:
            return read_uniform(texts)
        except (KeyError, ValueError, TypeError):
            continue
    return list(map(read or iso_time, texts))


def _times_in_seconds(texts: Sequence[str]) -> list[int]:
    return [_minutes[text[:17]] + _SECONDS[text[17:]] for text in texts]


def _times_in_milliseconds(texts: Sequence[str]) -> list[int]:
    return [
        _minutes[text[:17]] + _WHOLE_SECONDS[text[17:20]] + _fractions[text[20:]] for text in texts
    ]


def _times_in_any_zone(texts: Sequence[str]) -> list[int]:
    """Read times with any time zone. Raises TypeError for a time without a zone."""
    return list(map(microseconds, map(datetime.fromisoformat, texts)))


def epoch(value: object) -> int:
    """Return a time as microseconds since 1970. The size of `value` decides whether it is in
    seconds, milli-, micro- or nanoseconds since 1970."""
    number = decimal(value)
    for factor, bound in ((SECOND, 1e11), (1_000, 1e14), (1, 1e17)):
        if abs(number) < bound:
            return round(number * factor)
    return round(number / 1_000)


def any_time(value: object) -> int:
    """`epoch` of a number or a string of a number; `iso_time` of any other string."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return iso_time(value)
    return epoch(value)


def decimal(value: object) -> float:
    """Return a finite number from a number or a string, which may have a decimal comma."""
    if isinstance(value, str):
        number = plain_float(value.replace(",", ".", 1) if "." not in value else value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError as error:
            raise ValueError("too large") from error
    else:
        raise ValueError("not a number")
    if not isfinite(number):
        raise ValueError("not finite")
    return number


def is_plain(text: str) -> bool:
    """Return whether `float` reads the text, or rejects it, as file formats do. It also accepts
    digits of other scripts and `1_0`."""
    return text.isascii() and "_" not in text


def plain_float(text: str) -> float:
    """Return the number that the text is. Raises ValueError, also if `is_plain` rejects it."""
    text = text.strip()
    if not is_plain(text):
        raise ValueError("not a number")
    return float(text)


def e7(degrees: object) -> int:
    """Convert degrees, a number or a string, to 1e-7 degrees."""
    try:
        return round((degrees if type(degrees) is float else decimal(degrees)) * 1e7)
    except OverflowError as error:
        raise ValueError("not finite") from error


def unwrapped(number: object) -> int:
    """Return a number of 1e-7 degrees from Google's files. Google stored some negative numbers
    without their sign: numbers above 180 degrees are too large by 2^32."""
    whole = number if type(number) is int else round(decimal(number))
    return whole - 4_294_967_296 if whole > 1_800_000_000 else whole


def lat_lon(text: object) -> tuple[int, int]:
    """Return latitude and longitude in 1e-7 degrees from "52.52°, 13.405°" or "geo:52.52,13.405".
    A third value is ignored."""
    match = _LAT_LON.match(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("not a pair of coordinates")
    return round(float(match[1]) * 1e7), round(float(match[2]) * 1e7)


def measure(name: str, value: object) -> float | None:
    """Return the number, or None if it is not within its LIMITS: a point is valid without its
    measures, and files have negative numbers for unknown ones."""
    if value is None:
        return None
    if type(value) is not float and type(value) is not int:
        try:
            value = plain_float(value) if type(value) is str else decimal(value)
        except ValueError:
            return None
    low, high = LIMITS[name]
    return value if low <= value <= high else None


def checked_measures(values: Mapping[str, object]) -> Measures:
    """Return the measures, whose names are in LIMITS."""
    get = values.get
    return (
        measure("altitude", get("altitude")),
        measure("accuracy", get("accuracy")),
        measure("speed", get("speed")),
        measure("course", get("course")),
    )


def divided(value: object, divisor: float) -> float | None:
    """Return the number in another unit, or None if it is not a number."""
    try:
        return decimal(value) / divisor
    except ValueError:
        return None


def why_unreadable(time: object, *coordinates: object) -> str:
    """Return the reason to reject a point with unreadable values."""
    if any(value is None or value == "" for value in coordinates):
        return NO_COORDINATES
    for value in coordinates:
        text = str(value).strip().lower().lstrip("+-")
        if text in ("nan", "inf", "infinity"):
            return OUT_OF_RANGE
        try:
            decimal(value)
        except ValueError:
            return UNPARSABLE
    return NO_TIME if time is None or time == "" else UNPARSABLE
