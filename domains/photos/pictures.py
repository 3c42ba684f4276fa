"""pictures: what a picture's file says: that it is one, where and when it was taken; and a copy.

The copy is small, is a JPEG whatever the file was, and says nothing of place, time or camera.
"""

import math
import re
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from io import BytesIO
from typing import IO, Any

from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.ExifTags import GPS, IFD, Base

FORMATS = ("JPEG", "PNG", "WEBP")
SUFFIXES = {"JPEG": ".jpg", "MPO": ".jpg", "PNG": ".png", "WEBP": ".webp"}
"""How the files of what is read end. MPO is a JPEG with a second picture, as some phones write."""
TAKEN = "JPEG, PNG or WebP"
COPY_SIZE = (1280, 1280)
COPY_TYPE = "image/jpeg"
_SAID = 60
"""Characters of what an EXIF says that are repeated, at most."""
_decoding = threading.BoundedSemaphore(2)
"""Pictures that a process unpacks at once: each may take some hundred megabytes."""


class NotAPicture(ValueError):
    """The file is no picture that is taken here; the text says why, and what is."""


class TooManyPixels(NotAPicture):
    pass


@dataclass(slots=True)
class Picture:
    """What a picture's file says."""

    suffix: str
    copy: bytes
    said: dict[str, Any] = field(default_factory=dict)
    """`lat`, `lon` in degrees and `taken_at`, as far as its EXIF says so."""
    wrong: dict[str, str] = field(default_factory=dict)
    """By the same names what its EXIF says that cannot be."""


def read(file: IO[bytes], zone: tzinfo, megapixels: float) -> Picture:
    """Return what the file says; times without a zone are taken to be of `zone`.

    Raises NotAPicture for what is none, is cut off, or has more than so many pixels. The pixels
    are counted before any is unpacked.
    """
    file.seek(0)
    try:
        with _decoding, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it counts itself, below
            with Image.open(file, formats=FORMATS) as image:
                return _read(image, zone, megapixels)
    except NotAPicture:
        raise
    except Image.DecompressionBombError:
        raise TooManyPixels(f"it has more pixels than the {megapixels:g} million taken") from None
    except UnidentifiedImageError:
        raise NotAPicture(f"it is no picture that is known here; send {TAKEN}") from None
    except Exception as error:  # what Pillow raises for broken files is of any kind
        why = str(error)[:_SAID] or type(error).__name__
        raise NotAPicture(f"the picture is broken and cannot be read to its end: {why}") from None


def _read(image: Image.Image, zone: tzinfo, megapixels: float) -> Picture:
    width, height = image.size
    if width * height > megapixels * 1_000_000:
        raise TooManyPixels(
            f"it has {width} × {height} pixels, {width * height / 1e6:.0f} million,"
            f" and at most {megapixels:g} million are taken (PHOTOS_MAX_MEGAPIXELS)"
        )
    picture = Picture(SUFFIXES[image.format or ""], b"")
    _read_exif(image, picture, zone)
    picture.copy = _small(image)
    return picture


def _small(image: Image.Image) -> bytes:
    image.draft("RGB", COPY_SIZE)
    image.thumbnail(COPY_SIZE)
    turned = ImageOps.exif_transpose(image)
    if turned.mode in ("RGBA", "LA", "PA") or "transparency" in turned.info:
        turned = turned.convert("RGBA")
        ground = Image.new("RGBA", turned.size, "white")
        turned = Image.alpha_composite(ground, turned)
    out = BytesIO()
    bare = Image.new("RGB", turned.size)  # has nothing of the file's but its pixels
    bare.paste(turned.convert("RGB"))
    bare.save(out, "JPEG", quality=82, optimize=True)
    return out.getvalue()


def _read_exif(image: Image.Image, picture: Picture, zone: tzinfo) -> None:
    """Read its EXIF; one that cannot be read says nothing, the picture may be fine."""
    try:
        exif = image.getexif()
        taken, place = exif.get_ifd(IFD.Exif), exif.get_ifd(IFD.GPSInfo)
    except Exception:  # as above
        return
    _note(picture, "lat", lambda: _degrees(place, GPS.GPSLatitude, GPS.GPSLatitudeRef, 90))
    _note(picture, "lon", lambda: _degrees(place, GPS.GPSLongitude, GPS.GPSLongitudeRef, 180))
    _note(picture, "taken_at", lambda: _taken_at(taken, place, zone))


def _note(picture: Picture, name: str, look: Callable[[], Any]) -> None:
    try:
        found = look()
    except ValueError as error:
        picture.wrong[name] = str(error)
    else:
        if found is not None:
            picture.said[name] = found


def _degrees(place: Mapping[int, Any], tag: GPS, ref: GPS, most: int) -> float | None:
    """Return degrees, minutes and seconds as degrees, north and east above 0."""
    said = place.get(tag)
    if said is None:
        return None
    parts = said if isinstance(said, tuple) else (said,)
    words = ", ".join(str(part) for part in parts)[:_SAID]
    try:
        numbers = [float(part) for part in parts]
    except (TypeError, ValueError, ArithmeticError):
        raise ValueError(f"the picture's EXIF says {words!r}, which are no degrees") from None
    found = sum(number / 60**power for power, number in enumerate(numbers[:3]))
    if not numbers or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"the picture's EXIF says {words!r}, which are no degrees")
    if not 0 <= found <= most or min(numbers) < 0:
        raise ValueError(f"the picture's EXIF says {found:g}°, and {most} is the most there is")
    return -found if _text(place.get(ref))[:1].upper() in ("S", "W") else found


_TIME = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d):(\d\d)", re.ASCII)
_FARTHEST = 14 * 4
"""Quarters of an hour that a zone is off UTC, at most."""
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)", re.ASCII)


def _taken_at(taken: Mapping[int, Any], place: Mapping[int, Any], zone: tzinfo) -> datetime | None:
    """Return when the shutter opened, by the camera's clock.

    Its zone is the one it names, else the one by which it agrees with the satellites' time (which
    may be some minutes old), else `zone`.
    """
    said = _text(taken.get(Base.DateTimeOriginal) or taken.get(Base.DateTimeDigitized))
    offset = _OFFSET.fullmatch(_text(taken.get(Base.OffsetTimeOriginal)))
    by_gps = _gps_time(place)
    if not said.strip("0: "):
        return by_gps
    found = _TIME.match(said)
    try:
        at = datetime.fromisoformat("{}-{}-{}T{}:{}:{}".format(*found.groups())) if found else None
    except ValueError:
        at = None
    if at is None:
        raise ValueError(f"the picture's EXIF says {said[:_SAID]!r}, which is no time")
    if offset:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        if ahead < timedelta(hours=24):
            return at.replace(tzinfo=timezone(-ahead if offset[1] == "-" else ahead))
    if by_gps:
        quarters = round((at - by_gps.replace(tzinfo=None)) / timedelta(minutes=15))
        if abs(quarters) <= _FARTHEST:
            return at.replace(tzinfo=timezone(timedelta(minutes=15 * quarters)))
        return by_gps
    return at.replace(tzinfo=zone)


def _gps_time(place: Mapping[int, Any]) -> datetime | None:
    """Return the time of the satellites, which is UTC; None for what is none."""
    day, parts = _text(place.get(GPS.GPSDateStamp)), place.get(GPS.GPSTimeStamp)
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
