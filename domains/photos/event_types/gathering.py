from typing import Any

from django.conf import settings
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from domains.photos.event_types.base import PhotosEvent
from events.publish import Recorded


class GatheringEvent(PhotosEvent):
    """Something happened to a gathering."""

    abstract = True
    receiver_roles = ["photographer"]
    can_mail = can_web = can_rss = True

    class Payload(BaseModel):
        """The gathering as it stood then; distances are metres."""

        model_config = ConfigDict(extra="forbid")
        gathering: int
        lat: float = Field(ge=-90, le=90)
        lon: float = Field(ge=-180, le=180)
        radius: float
        photo_count: int
        first_photo_at: AwareDatetime
        last_photo_at: AwareDatetime

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `gathering/7`."""
        return f"gathering/{payload['gathering']}"

    @classmethod
    def thread(cls, event: Recorded) -> str:
        return f"gathering {event.payload['gathering']}"

    @classmethod
    def link(cls, event: Recorded) -> str:
        return f"{settings.PUBLIC_URL}/photos/gatherings/{event.payload['gathering']}"


class GatheringStarted(GatheringEvent):
    """Gathering started"""

    name = "photos.gathering_started"


class GatheringFinalized(GatheringEvent):
    """Gathering finalized"""

    name = "photos.gathering_finalized"
