"""Read the location and time of a picture from its EXIF."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from PIL import Image
from PIL.ExifTags import GPS, IFD, Base

_MAX_QUOTED = 60
"""Maximum characters of an EXIF value that an error quotes."""


@dataclass(slots=True)
class Exif:
    """Location and time of a picture."""

    values: dict[str, Any] = field(default_factory=dict)
    """The usable values: `lat` and `lon` in degrees, and `taken_at` in ISO format. It has no zone
    if the zone of the camera is not known."""
    errors: dict[str, str] = field(default_factory=dict)
    """Error messages for unusable values, by the same names."""


def read_exif(image: Image.Image) -> Exif:
    """Return location and time; the result is empty if the EXIF cannot be read."""
    exif = Exif()
    try:
        tags = image.getexif()
        camera, gps = tags.get_ifd(IFD.Exif), tags.get_ifd(IFD.GPSInfo)
    except Exception:  # Pillow raises exceptions of any type for damaged files
        return exif
    readers: dict[str, Callable[[], Any]] = {
        "lat": lambda: _degrees(gps, GPS.GPSLatitude, GPS.GPSLatitudeRef, 90),
        "lon": lambda: _degrees(gps, GPS.GPSLongitude, GPS.GPSLongitudeRef, 180),
        "taken_at": lambda: _taken_at(camera, gps),
    }
    for name, read in readers.items():
        try:
            value = read()
        except ValueError as error:
            exif.errors[name] = f"the picture's EXIF has {error}"
        else:
            if value is not None:
                exif.values[name] = value.isoformat() if isinstance(value, datetime) else value
    return exif


def _degrees(gps: Mapping[int, Any], tag: GPS, ref: GPS, limit: int) -> float | None:
    """Return a coordinate as decimal degrees, north and east positive; None if it is missing."""
    value = gps.get(tag)
    if value is None:
        return None
    parts = value if isinstance(value, tuple) else (value,)
    try:
        numbers = [float(part) for part in parts]
    except (TypeError, ValueError, ArithmeticError):
        numbers = []
    if not numbers or not all(math.isfinite(number) for number in numbers):
        shown = ", ".join(str(part) for part in parts)[:_MAX_QUOTED]
        raise ValueError(f"{shown!r}, which is not a number of degrees")
    degrees = sum(number / 60**power for power, number in enumerate(numbers[:3]))
    if not 0 <= degrees <= limit or min(numbers) < 0:
        raise ValueError(f"{degrees:g}°, and the limit is {limit}°")
    return -degrees if _text(gps.get(ref))[:1].upper() in ("S", "W") else degrees


_TIME = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d):(\d\d)", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)", re.ASCII)
_MAX_QUARTERS = 14 * 4
"""Maximum offset of a time zone from UTC, in quarters of an hour."""


def _taken_at(camera: Mapping[int, Any], gps: Mapping[int, Any]) -> datetime | None:
    """Return when the picture was taken, by the camera's clock; None if it is missing.

    If EXIF has no time zone, it is the offset, in quarters of an hour, between the camera's clock
    and the GPS time (which may be some minutes old), if there is one. Raises ValueError.
    """
    text = _text(camera.get(Base.DateTimeOriginal) or camera.get(Base.DateTimeDigitized))
    offset = _OFFSET.fullmatch(_text(camera.get(Base.OffsetTimeOriginal)))
    gps_time = _gps_time(gps)
    if not text.strip("0: "):
        return gps_time
    local = _local_time(text)
    if offset:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        if ahead < timedelta(hours=24):
            return local.replace(tzinfo=timezone(-ahead if offset[1] == "-" else ahead))
    if gps_time:
        quarters = round((local - gps_time.replace(tzinfo=None)) / timedelta(minutes=15))
        if abs(quarters) <= _MAX_QUARTERS:
            return local.replace(tzinfo=timezone(timedelta(minutes=15 * quarters)))
        return gps_time
    return local


def _local_time(text: str) -> datetime:
    match = _TIME.match(text)
    try:
        if match:
            return datetime.fromisoformat("{}-{}-{}T{}:{}:{}".format(*match.groups()))
    except ValueError:
        pass
    raise ValueError(f"{text[:_MAX_QUOTED]!r}, which is not a time")


def _gps_time(gps: Mapping[int, Any]) -> datetime | None:
    """Return the GPS time in UTC, or None if it cannot be read."""
    day, parts = _text(gps.get(GPS.GPSDateStamp)), gps.get(GPS.GPSTimeStamp)
    try:
        hours, minutes, seconds = (float(part) for part in parts or ())
        start = datetime.strptime(day.replace("-", ":"), "%Y:%m:%d").replace(tzinfo=UTC)
        return start + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    except (TypeError, ValueError, ArithmeticError):
        return None


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    return value.strip("\0 ") if isinstance(value, str) else ""
