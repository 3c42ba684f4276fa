"""Make pictures with an EXIF, photos and gatherings for the tests."""

import struct
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

from PIL import Image
from PIL.ExifTags import GPS, IFD, Base
from PIL.TiffImagePlugin import IFDRational

from tailrace.db import clock
from tailrace.domains.photos.clustering.shown_place import shown_place
from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.uploads.pictures import storage

BERLIN = (52.52, 13.405)


def recent() -> datetime:
    """A time of today or yesterday, whole to the second."""
    return clock.now().replace(microsecond=0) - timedelta(hours=2)


def degrees(value: float) -> tuple[IFDRational, ...]:
    """Return degrees as EXIF has them: degrees, minutes, seconds."""
    thirds = round(abs(value) * 3600 * 1000)
    return (
        IFDRational(thirds // 3_600_000, 1),
        IFDRational(thirds // 60_000 % 60, 1),
        IFDRational(thirds % 60_000, 1000),
    )


def exif(
    lat: Any = None,
    lon: Any = None,
    taken_at: Any = None,
    offset: str = "+00:00",
    gps_at: datetime | None = None,
) -> Image.Exif:
    """Return an EXIF; numbers and times as a camera writes them, other values unchanged."""
    tags = Image.Exif()
    tags[Base.Make] = "Tailrace"
    place: dict[int, Any] = {}
    taken: dict[int, Any] = {}
    for value, tag, ref, words in (
        (lat, GPS.GPSLatitude, GPS.GPSLatitudeRef, "NS"),
        (lon, GPS.GPSLongitude, GPS.GPSLongitudeRef, "EW"),
    ):
        if value is not None:
            number = isinstance(value, int | float)
            place[tag] = degrees(value) if number else value
            place[ref] = words[1] if number and value < 0 else words[0]
    if gps_at is not None:
        place[GPS.GPSDateStamp] = f"{gps_at:%Y:%m:%d}"
        place[GPS.GPSTimeStamp] = tuple(
            IFDRational(part, 1) for part in (gps_at.hour, gps_at.minute, gps_at.second)
        )
    if taken_at is not None:
        is_time = isinstance(taken_at, datetime)
        taken[Base.DateTimeOriginal] = f"{taken_at:%Y:%m:%d %H:%M:%S}" if is_time else taken_at
        if offset:
            taken[Base.OffsetTimeOriginal] = offset
    tags.get_ifd(IFD.GPSInfo).update(place)
    tags.get_ifd(IFD.Exif).update(taken)
    return tags


def picture(
    tags: Image.Exif | None = None,
    *,
    size: tuple[int, int] = (320, 240),
    form: str = "JPEG",
    colour: str = "teal",
    mode: str = "RGB",
) -> bytes:
    """Return a picture's file."""
    out = BytesIO()
    extra = {} if tags is None else {"exif": tags}
    Image.new(mode, size, colour).save(out, form, **extra)
    return out.getvalue()


def zero_denominator_picture() -> bytes:
    """Return a JPEG whose latitude has a denominator of 0, which no library would write."""
    file = picture(exif(48.125, BERLIN[1], recent()))
    good = struct.pack(">LLLLLL", 48, 1, 7, 1, 30000, 1000)
    little = struct.pack("<LLLLLL", 48, 1, 7, 1, 30000, 1000)
    for old, order in ((good, ">"), (little, "<")):
        if old in file:
            return file.replace(old, struct.pack(f"{order}LLLLLL", 48, 0, 7, 0, 30, 0))
    # Pillow reduces fractions: then it is 30/1.
    for order in "<>":
        old = struct.pack(f"{order}LLLLLL", 48, 1, 7, 1, 30, 1)
        if old in file:
            return file.replace(old, struct.pack(f"{order}LLLLLL", 48, 0, 7, 0, 30, 0))
    raise AssertionError("the latitude is written in another way")


def make_photo(
    user: Any, *, at: datetime | None = None, lat: float = BERLIN[0], **values: Any
) -> Photo:
    """Store a photo with its picture, in any state, without a job."""
    key = storage.new_key(".jpg")
    file = picture(colour=values.pop("colour", "teal"))
    storage.save(key, BytesIO(file), file)
    return Photo.objects.create(
        user=user, storage_key=key, lat=lat, lon=values.pop("lon", BERLIN[1]),
        taken_at=at or recent(), **values,
    )  # fmt: skip


def make_gathering(
    *users: Any, state: str = "ACTIVE", lat: float = BERLIN[0], **values: Any
) -> Gathering:
    """Return a gathering with a photo of each of the users."""
    start, lon = values.pop("at", recent()), values.pop("lon", BERLIN[1])
    last = start + timedelta(minutes=max(len(users) - 1, 0))
    place = shown_place([(lat, lon)], 100)
    gathering = Gathering.objects.create(
        state=state, lat=lat, lon=lon, radius=23.4, photo_count=len(users),
        first_photo_at=start, last_photo_at=last, shown_lat=place.lat, shown_lon=place.lon,
        shown_radius=place.radius, placed_count=len(users), place_grid=100, **values,
    )  # fmt: skip
    for number, user in enumerate(users):
        make_photo(
            user, at=start + timedelta(minutes=number), lat=lat, lon=lon, state="clustered",
            gathering=gathering, next_try_at=None, caption=f"Nr. {number}",
        )  # fmt: skip
    return gathering


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)
