"""The event types of photos and gatherings."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from domains.photos.visibility import readers_of_uploads
from events.publish import NewEvent, Recorded
from events.readers import Readers
from events.types import EventType
from subscriptions.types.subscribable import Subscribable


class PhotosEvent(Subscribable, EventType):
    """Something happened to photos."""

    abstract = True
    api_records = False


class Uploaded(PhotosEvent):
    """Photo uploaded"""

    name = "photos.uploaded"

    class Payload(BaseModel):
        """The photo's place, time and storage key, without the picture.

        When the photo is deleted, only its id stays.
        """

        model_config = ConfigDict(extra="forbid")
        photo: int
        lat: float | None = Field(None, ge=-90, le=90)
        lon: float | None = Field(None, ge=-180, le=180)
        taken_at: AwareDatetime | None = None
        storage_key: str | None = None

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the photo's owner and those who may see all photos."""
        return readers_of_uploads(events)

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `photo/7`."""
        return f"photo/{payload['photo']}"


class GatheringEvent(PhotosEvent):
    """Something happened to a gathering."""

    abstract = True
    receiver_roles = ["photographer"]
    can_mail = can_web = can_rss = True

    class Payload(BaseModel):
        """The gathering at that time: its shown place, and metres around it."""

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
        """Return the event to publish; each gathering has one of each type."""
        source_id = f"gathering/{payload['gathering']}/{cls.name.rpartition('_')[2]}"
        return NewEvent(cls, payload, source="photos", source_id=source_id, actor="")

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `gathering/7`."""
        return f"gathering/{payload['gathering']}"

    @classmethod
    def thread(cls, event: Recorded) -> str:
        return f"gathering {event.payload.gathering}"

    @classmethod
    def link(cls, event: Recorded) -> str:
        return f"{settings.PUBLIC_URL}/photos/gatherings/{event.payload.gathering}"


class GatheringStarted(GatheringEvent):
    """Gathering started"""

    name = "photos.gathering_started"


class GatheringFinalized(GatheringEvent):
    """Gathering finalized"""

    name = "photos.gathering_finalized"
