"""upload: store a photo, and say so, in one transaction."""

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.functions import Now

from domains.photos.event_types import Uploaded
from domains.photos.models import Photo
from events import clock
from events.publish import NewEvent, publish

if TYPE_CHECKING:
    from django.contrib.auth.models import User

KEY_LIMIT = 500
CAPTION_LIMIT = 2000
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""Before it nobody took digital photos; 1970 and 1980 are what a camera without a clock says."""
AHEAD = timedelta(days=1)
"""A camera that has not heard of time zones may be that much ahead."""


class InvalidPhoto(ValueError):
    """The photo cannot be stored as it is; the message names the field. Nothing was stored."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


def store(
    user: "User | None",
    *,
    lat: float,
    lon: float,
    taken_at: datetime,
    storage_key: str,
    caption: str = "",
) -> Photo:
    """Store the photo's row and publish `photos.uploaded`, both or neither; return the photo.

    Joins the caller's transaction or opens one, and needs no broker. Raises InvalidPhoto for a
    point that is not on earth, a time that cannot be, or a storage key that is taken.
    """
    check(lat=lat, lon=lon, taken_at=taken_at, storage_key=storage_key, caption=caption)
    try:
        with transaction.atomic():
            photo = _insert(user, lat, lon, taken_at, storage_key, caption)
            _publish(photo, user)
    except IntegrityError as error:
        if "storage_key" not in str(error):
            raise
        raise InvalidPhoto("storage_key", f"{storage_key!r} is taken by another photo") from None
    return photo


def check(*, lat: Any, lon: Any, taken_at: Any, storage_key: str, caption: str = "") -> None:
    """Raise InvalidPhoto, which names the field, the value and the way out."""
    for name, value, limit in (("lat", lat, 90), ("lon", lon, 180)):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or abs(value) > limit:
            raise InvalidPhoto(name, f"{value!r} is not a number of degrees, -{limit} to {limit}")
    if not isinstance(taken_at, datetime) or taken_at.tzinfo is None:
        raise InvalidPhoto("taken_at", f"{taken_at!r} is not a time with its zone")
    if taken_at < EARLIEST:
        raise InvalidPhoto(
            "taken_at", f"{taken_at.isoformat()} is before {EARLIEST:%Y}; give the real time"
        )
    if taken_at > clock.now() + AHEAD:
        raise InvalidPhoto("taken_at", f"{taken_at.isoformat()} is still to come")
    for name, text, most in (
        ("storage_key", storage_key, KEY_LIMIT),
        ("caption", caption, CAPTION_LIMIT),
    ):
        if len(text) > most:
            raise InvalidPhoto(name, f"has {len(text)} characters, {most} at most")
        if "\0" in text:
            raise InvalidPhoto(name, "has a NUL character, which cannot be stored")
    if not storage_key:
        raise InvalidPhoto("storage_key", "is empty; say where the picture is kept")


def _insert(
    user: "User | None", lat: float, lon: float, taken_at: datetime, key: str, caption: str
) -> Photo:
    # The database's clock, as the sweeper compares by it.
    now = ExpressionWrapper(
        Now() + Value(timedelta(seconds=clock.offset)), output_field=DateTimeField()
    )
    photo = Photo.objects.create(
        user=user, lat=lat, lon=lon, taken_at=taken_at, storage_key=key, caption=caption,
        uploaded_at=now, opened_at=now, next_try_at=now,
    )  # fmt: skip
    photo.refresh_from_db()
    return photo


def _publish(photo: Photo, user: "User | None") -> None:
    publish(
        NewEvent(
            Uploaded,
            {
                "photo": photo.pk,
                "lat": photo.lat,
                "lon": photo.lon,
                "taken_at": photo.taken_at,
                "storage_key": photo.storage_key,
            },
            source="photos",
            source_id=f"photo/{photo.pk}",
            actor=None if user is None else user.get_username(),
        )
    )
