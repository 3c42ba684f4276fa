"""Store a photo's row and publish `photos.uploaded`, in one transaction."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.functions import Now

from tailrace.db import clock
from tailrace.domains.photos.event_types import PlacesRequested, Uploaded
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.validation import InvalidPhoto, validate
from tailrace.events.publish import NewEvent, publish

SOURCE = "photos"


def source_id(photo: int) -> str:
    """Return the source id of the photo's event `photos.uploaded`."""
    return f"photo/{photo}"


def create_photo(
    user: User | None,
    *,
    lat: float | None,
    lon: float | None,
    taken_at: datetime,
    storage_key: str,
    caption: str = "",
    original_bytes: int = 0,
    copy_bytes: int = 0,
) -> Photo:
    """Store the photo's row and publish `photos.uploaded` in one transaction; return the photo.

    Without `lat` and `lon`, the photo waits for a location from its owner's timeline, and
    `photos.uploaded` is published once it has one. `original_bytes` and `copy_bytes` are the file
    sizes of a picture that is stored here. Joins the caller's transaction or opens one, and needs
    no broker. Raises InvalidPhoto for a point that is not on the earth, an impossible time, or a
    storage key of another photo.
    """
    validate(
        lat=lat, lon=lon, taken_at=taken_at, storage_key=storage_key, caption=caption,
        unplaced=user is not None,
    )  # fmt: skip
    # The sweeper compares with the database's clock.
    now = ExpressionWrapper(
        Now() + Value(timedelta(seconds=clock.offset)), output_field=DateTimeField()
    )
    try:
        with transaction.atomic():
            photo = Photo.objects.create(
                user=user, lat=lat, lon=lon, taken_at=taken_at, storage_key=storage_key,
                caption=caption, uploaded_at=now, opened_at=now, next_try_at=now,
                original_bytes=original_bytes, copy_bytes=copy_bytes,
                state=Photo.State.UNPLACED if lat is None else Photo.State.NEW,
            )  # fmt: skip
            photo.refresh_from_db()
            if lat is None and user is not None:
                publish(PlacesRequested.new_events(user.pk, [(photo.pk, photo.taken_at)]))
            else:
                publish_uploaded([photo], user)
    except IntegrityError as error:
        if "storage_key" not in str(error):
            raise
        raise InvalidPhoto("storage_key", f"{storage_key!r} belongs to another photo") from None
    return photo


def publish_uploaded(photos: Sequence[Photo], user: User | None) -> None:
    """Publish `photos.uploaded` for photos of one user. All photos must have a location."""
    actor = None if user is None else user.get_username()
    names = ("lat", "lon", "taken_at", "storage_key")
    publish(
        NewEvent(
            Uploaded,
            {"photo": photo.pk, **{name: getattr(photo, name) for name in names}},
            source=SOURCE,
            source_id=source_id(photo.pk),
            actor=actor,
        )
        for photo in photos
    )
