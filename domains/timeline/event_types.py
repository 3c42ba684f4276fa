"""The event types of timelines. They contain times and numbers of points, but no locations.

Only `PlacesKnown` has locations, for the user's photos. They are erased once the photos have them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from tailrace.domains.timeline.models import Device, Import
from tailrace.events.models import Event
from tailrace.events.privacy.erase import erase
from tailrace.events.privacy.visibility import only_user
from tailrace.events.publish import NewEvent
from tailrace.events.readers import Readers
from tailrace.events.types import EventType

SOURCE = "timeline"


class TimelineEvent(EventType):
    """Something happened to a user's timeline. Only this user may read the event."""

    abstract = True
    api_records = False
    about: ClassVar[str]
    """The kind of the event's subject: import, device or user."""
    personal: ClassVar[str] = "user_id"
    """A payload field that only events have that are not erased yet."""

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return only the user, or no user once the event is erased."""
        return only_user(events, "user_id")

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"{cls.about}/{payload[cls.key()]}"

    @classmethod
    def key(cls) -> str:
        """Return the payload field with the id of the subject. Erasing the event keeps only this
        field."""
        return f"{cls.about}_id"

    @classmethod
    def erase_some(cls, id: int, limit: int) -> int:
        """Erase up to `limit` events about the subject with this id; return how many."""
        events = Event.objects.filter(subject=f"{cls.about}/{id}", type=cls.name, source=SOURCE)
        ids = events.filter(payload__has_key=cls.personal).values_list("source_id", flat=True)
        return len(erase(SOURCE, list(ids[:limit]), keep=[cls.key()]))


class ImportPromoted(TimelineEvent):
    """Imported points were added to a timeline"""

    name = "timeline.import_promoted"
    about = "import"

    class Payload(BaseModel):
        """The import, its user and device, the number of new points, and the times of the first and
        the last point of the file. When the import is deleted, only its id stays."""

        model_config = ConfigDict(extra="forbid")
        import_id: int
        user_id: int | None = None
        device_id: int | None = None
        first_at: AwareDatetime | None = None
        last_at: AwareDatetime | None = None
        count: int = 0

    @classmethod
    def new_event(cls, row: Import) -> NewEvent:
        """Return the event to publish when the import is promoted. An import has only one."""
        names = ("user_id", "device_id", "first_at", "last_at")
        payload = {name: getattr(row, name) for name in names}
        payload |= {"import_id": row.pk, "count": row.inserted}
        source_id = f"import/{row.pk}/promoted"
        return NewEvent(cls, payload, source=SOURCE, source_id=source_id, actor="")


class PointsAdded(TimelineEvent):
    """Points from a device were added to a timeline"""

    name = "timeline.points_added"
    about = "device"

    class Payload(BaseModel):
        """The device, its user, the number of new points, and the times of the first and the last
        of them. When the device is deleted, only its id stays."""

        model_config = ConfigDict(extra="forbid")
        device_id: int
        user_id: int | None = None
        first_at: AwareDatetime | None = None
        last_at: AwareDatetime | None = None
        count: int = 0

    @classmethod
    def new_event(cls, row: Device) -> NewEvent:
        """Return the event to publish for the device's unannounced points."""
        payload = {
            "device_id": row.pk,
            "user_id": row.user_id,
            "first_at": row.unannounced_first,
            "last_at": row.unannounced_last,
            "count": row.unannounced,
        }
        return NewEvent(cls, payload, source=SOURCE, actor="")


class PlaceOfPhoto(BaseModel):
    """Where the user was when a photo was taken."""

    photo: int
    lat: float = Field(ge=-90, le=90)
    lon: float = Field(ge=-180, le=180)


class PlacesKnown(TimelineEvent):
    """The timeline knows where photos of its user were taken"""

    name = "timeline.places_known"
    about = "user"
    personal = "places"

    class Payload(BaseModel):
        """The user, and the locations of the photos. These are erased once the photos have them."""

        model_config = ConfigDict(extra="forbid")
        user_id: int
        places: list[PlaceOfPhoto] = []
