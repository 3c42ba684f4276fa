"""The event types of photos and gatherings."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from tailrace.domains.photos.models.visibility import readers_of_uploads
from tailrace.events.privacy.visibility import only_user
from tailrace.events.publish import NewEvent, Recorded
from tailrace.events.readers import Readers
from tailrace.events.types import EventType
from tailrace.subscriptions.types.subscribable import Subscribable

PHOTOS_PER_EVENT = 100
"""Photos per PlacesRequested event."""
PLACE_GAP = timedelta(minutes=10)
"""Maximum time between a photo without a location and the points from which it gets one."""


class PhotosEvent(Subscribable, EventType):
    """Something happened to photos."""

    abstract = True
    family_title = "Photos"
    api_records = False
    subject_from: ClassVar[tuple[str, str]]
    """Prefix and payload key of the subject: `("photo", "photo")` for `photo/7`."""

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        prefix, key = cls.subject_from
        return f"{prefix}/{payload[key]}"


class Uploaded(PhotosEvent):
    """Photo uploaded"""

    name = "photos.uploaded"
    subject_from = ("photo", "photo")

    class Payload(BaseModel):
        """The photo's location, time and storage key; when it is deleted, only its id."""

        model_config = ConfigDict(extra="forbid")
        photo: int
        lat: float | None = Field(None, ge=-90, le=90)
        lon: float | None = Field(None, ge=-180, le=180)
        taken_at: AwareDatetime | None = None
        storage_key: str | None = None

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the photo's owner and the users who may see all photos."""
        return readers_of_uploads(events)


class Deleted(PhotosEvent):
    """Photo deleted"""

    name = "photos.deleted"
    subject_from = ("photo", "photo")

    class Payload(BaseModel):
        """The photo's id. If the photo was sent to Kafka, also its storage key, until consumers are
        told that it is deleted."""

        model_config = ConfigDict(extra="forbid")
        photo: int
        storage_key: str | None = None

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the users who may see all photos."""
        return readers_of_uploads(events)


class UnplacedPhoto(BaseModel):
    """A photo without a location, and the time when it was taken."""

    photo: int
    taken_at: AwareDatetime


class PlacesRequested(PhotosEvent):
    """Photos without a location wait for points of their owner's timeline"""

    name = "photos.places_requested"
    subject_from = ("user", "user_id")

    class Payload(BaseModel):
        """The owner, the photos, and the maximum seconds between a photo and a point; when the
        request is answered, only the owner's id."""

        model_config = ConfigDict(extra="forbid")
        user_id: int
        photos: list[UnplacedPhoto] = []
        within_seconds: int = 0

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the photos' owner."""
        return only_user(events, "user_id")

    @classmethod
    def new_events(
        cls, user_id: int, photos: Sequence[tuple[int, datetime]], origin: str = ""
    ) -> list[NewEvent]:
        """Return the events to publish for photos (id, time) of this user, PHOTOS_PER_EVENT each.
        With `origin`, the same photos are requested only once."""
        starts = range(0, len(photos), PHOTOS_PER_EVENT)
        chunks = [photos[start : start + PHOTOS_PER_EVENT] for start in starts]
        return [
            NewEvent(
                cls,
                {
                    "user_id": user_id,
                    "photos": [{"photo": id, "taken_at": taken_at} for id, taken_at in chunk],
                    "within_seconds": int(PLACE_GAP.total_seconds()),
                },
                source="photos",
                source_id=f"places/{origin}/{chunk[0][0]}-{chunk[-1][0]}" if origin else "",
                actor="",
            )
            for chunk in chunks
        ]


class GatheringEvent(PhotosEvent):
    """Something happened to a gathering."""

    abstract = True
    family_title = "Gatherings of photos"
    receiver_roles = ["photographer"]
    can_mail = can_web = can_rss = True
    subject_from = ("gathering", "gathering")

    class Payload(BaseModel):
        """The figures of the gathering at that time, with its shown location and radius (m)."""

        model_config = ConfigDict(extra="forbid")
        gathering: int
        lat: float = Field(ge=-90, le=90)
        lon: float = Field(ge=-180, le=180)
        radius: float
        photo_count: int
        first_photo_at: AwareDatetime
        last_photo_at: AwareDatetime

    @classmethod
    def new_event(cls, payload: dict[str, Any]) -> NewEvent:
        """Return the event to publish. A gathering has at most one event of each type."""
        source_id = f"gathering/{payload['gathering']}/{cls.name.rpartition('_')[2]}"
        return NewEvent(cls, payload, source="photos", source_id=source_id, actor="")

    @classmethod
    def thread(cls, event: Recorded) -> str:
        return f"gathering {event.payload.gathering}"

    @classmethod
    def link(cls, event: Recorded) -> str:
        return f"{settings.PUBLIC_URL}/photos/gatherings/{event.payload.gathering}"


class GatheringStarted(GatheringEvent):
    """Gathering started"""

    name = "photos.gathering_started"


class GatheringDissolved(PhotosEvent):
    """Gathering dissolved: it had too few photos left"""

    name = "photos.gathering_dissolved"
    subject_from = ("gathering", "gathering")

    class Payload(BaseModel):
        """The id of the gathering, which may no longer exist."""

        model_config = ConfigDict(extra="forbid")
        gathering: int


class GatheringFinalized(GatheringEvent):
    """Gathering finalized"""

    name = "photos.gathering_finalized"
