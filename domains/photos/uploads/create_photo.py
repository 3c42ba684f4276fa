"""Store a photo's row and publish `photos.uploaded`, in one transaction."""

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.functions import Now

from db import clock
from domains.photos.event_types import Uploaded
from domains.photos.models import Photo
from domains.photos.uploads.validation import InvalidPhoto, validate
from events.publish import NewEvent, publish

SOURCE = "photos"


def source_id(photo: int) -> str:
    """Return the source id of a photo's `photos.uploaded`."""
    return f"photo/{photo}"


def create_photo(
    user: User | None,
    *,
    lat: float,
    lon: float,
    taken_at: datetime,
    storage_key: str,
    caption: str = "",
    original_bytes: int = 0,
    copy_bytes: int = 0,
) -> Photo:
    """Store the photo's row and publish `photos.uploaded`, both or neither; return the photo.

    The sizes are those of a picture that is stored here.

    Joins the caller's transaction or opens one, and needs no broker. Raises InvalidPhoto for a
    point that is not on the earth, an impossible time, or a storage key of another photo.
    """
    validate(lat=lat, lon=lon, taken_at=taken_at, storage_key=storage_key, caption=caption)
    # The database's clock, because the sweeper compares with it.
    now = ExpressionWrapper(
        Now() + Value(timedelta(seconds=clock.offset)), output_field=DateTimeField()
    )
    try:
        with transaction.atomic():
            photo = Photo.objects.create(
                user=user, lat=lat, lon=lon, taken_at=taken_at, storage_key=storage_key,
                caption=caption, uploaded_at=now, opened_at=now, next_try_at=now,
                original_bytes=original_bytes, copy_bytes=copy_bytes,
            )  # fmt: skip
            photo.refresh_from_db()
            _publish(photo, user)
    except IntegrityError as error:
        if "storage_key" not in str(error):
            raise
        raise InvalidPhoto("storage_key", f"{storage_key!r} belongs to another photo") from None
    return photo


def _publish(photo: Photo, user: User | None) -> None:
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
            source=SOURCE,
            source_id=source_id(photo.pk),
            actor=None if user is None else user.get_username(),
        )
    )
