"""Validate a message from Kafka and store its photo."""

from typing import Annotated, Any

from django.contrib.auth import get_user_model
from django.db import DataError
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, ValidationError

from tailrace.db.times import in_utc
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.create_photo import create_photo
from tailrace.domains.photos.uploads.validation import InvalidPhoto
from tailrace.events.errors import PublishError
from tailrace.events.publishing.validation import clean, describe

MAX_MESSAGE_BYTES = 65_536
"""A message describes a photo; it does not contain the picture."""


class MalformedMessage(Exception):
    """The message can never be stored as a photo; the text states the reason."""


def _storable(text: str) -> str:
    if clean(text)[1]:
        raise ValueError("the text has a NUL character, which cannot be stored")
    return text


Storable = Annotated[str, AfterValidator(_storable)]


class IncomingPhoto(BaseModel):
    """A photo as a message describes it, like those of the uploads topic of another installation.
    Unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    storage_key: Storable
    lat: float
    lon: float
    taken_at: Annotated[AwareDatetime, AfterValidator(in_utc)]
    """ISO 8601 with a time zone."""
    caption: Storable = ""
    user: Storable | None = None
    """User name of the photo's owner."""


def parse_message(value: bytes | None) -> IncomingPhoto:
    """Return the photo that the message describes. Raises MalformedMessage."""
    if value is None:
        raise MalformedMessage("the message has no value")
    if len(value) > MAX_MESSAGE_BYTES:
        size = len(value)
        raise MalformedMessage(f"the message has {size} bytes; the limit is {MAX_MESSAGE_BYTES}")
    try:
        return IncomingPhoto.model_validate_json(value)
    except ValidationError as error:
        raise MalformedMessage(str(clean(describe(error))[0])) from None


def store_message(value: bytes | None) -> bool:
    """Store the photo of the message; return False if it is stored already, with this storage key.
    Raises MalformedMessage."""
    incoming = parse_message(value)
    user = _user(incoming.user)
    identity = incoming.model_dump(include={"storage_key", "lat", "lon", "taken_at"})
    try:
        # create_photo has its own savepoint: after an error the caller's transaction is usable.
        create_photo(user, caption=incoming.caption, **identity)
    except InvalidPhoto as error:
        if error.field == "storage_key" and Photo.objects.filter(user=user, **identity).exists():
            return False
        raise MalformedMessage(str(error)) from None
    except (PublishError, DataError, ValueError, OverflowError) as error:
        raise MalformedMessage(str(clean(str(error))[0])) from None
    return True


def _user(name: str | None) -> Any:
    if name is None:
        return None
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        advice = "create the user and send the message again"
        raise MalformedMessage(f"user: there is no user {name[:150]!r}; {advice}")
    return user
