"""What comes from Kafka: the shape of a message, and the photo that it becomes."""

from typing import Annotated, Any

from django.contrib.auth import get_user_model
from django.db import DataError
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, ValidationError

from domains.photos import upload
from domains.photos.models import Photo
from events.errors import PublishError
from events.prepare import clean, describe

LARGEST = 65_536
"""Bytes of a message that is about a photo: it holds no picture."""


class Malformed(Exception):
    """The message can never become a photo; the text says why."""


def _storable(text: str) -> str:
    if clean(text)[1]:
        raise ValueError("it has a NUL character, which cannot be stored")
    return text


Storable = Annotated[str, AfterValidator(_storable)]


class Incoming(BaseModel):
    """A photo as others tell it. What else a message says is ignored.

    A message of our own topic of uploads has this shape too, so one installation can read another.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    storage_key: Storable
    lat: float
    lon: float
    taken_at: AwareDatetime
    """ISO 8601 with the zone."""
    caption: Storable = ""
    user: Storable | None = None
    """Name of the user whose photo it is."""


def read(value: bytes | None) -> Incoming:
    """Return what the message says; raise Malformed."""
    if value is None:
        raise Malformed("it has no value")
    if len(value) > LARGEST:
        raise Malformed(f"it has {len(value)} bytes, {LARGEST} at most")
    try:
        return Incoming.model_validate_json(value)
    except ValidationError as error:
        raise Malformed(str(clean(describe(error))[0])) from None


def take(value: bytes | None) -> bool:
    """Store the photo of the message; False if it is stored already. Raises Malformed.

    A photo is known by its storage key, so a message that comes again stores nothing.
    """
    incoming = read(value)
    user = _user(incoming.user)
    try:
        # In a savepoint of its own: what it refuses leaves the caller's transaction as it was.
        upload.store(user, **incoming.model_dump(exclude={"user"}))
    except upload.InvalidPhoto as error:
        if error.field == "storage_key" and _is_stored(incoming, user):
            return False
        raise Malformed(str(error)) from None
    except (PublishError, DataError, ValueError, OverflowError) as error:
        raise Malformed(str(clean(str(error))[0])) from None
    return True


def _user(name: str | None) -> Any:
    if name is None:
        return None
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise Malformed(
            f"user: nobody is called {name[:150]!r}; create the user, and send it again"
        )
    return user


def _is_stored(incoming: Incoming, user: Any) -> bool:
    return Photo.objects.filter(
        storage_key=incoming.storage_key,
        user=user,
        lat=incoming.lat,
        lon=incoming.lon,
        taken_at=incoming.taken_at,
    ).exists()
