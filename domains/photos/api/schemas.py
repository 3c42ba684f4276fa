"""What the API of photos takes and returns."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from domains.photos.uploads.validation import MAX_CAPTION_LENGTH, MAX_KEY_LENGTH
from web.api.pagination import PageParams
from web.api.schemas import In, Out

EXAMPLE = "send a time such as 2026-10-01T12:00:00Z or 2026-10-01T14:00:00+02:00"


def _time(value: Any) -> Any:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        at and at.timestamp()  # the first and last days of the calendar have no time in UTC
    except (ValueError, OverflowError):
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(f"{str(value)[:60]!r} is not a time with a time zone: {EXAMPLE}")
    return at


Latitude = Annotated[float, Field(ge=-90, le=90, description="degrees, north is positive")]
Longitude = Annotated[float, Field(ge=-180, le=180, description="degrees, east is positive")]
TakenAt = Annotated[
    datetime, BeforeValidator(_time), Field(description="with a time zone, as in RFC 3339")
]
Caption = Annotated[str, Field(max_length=MAX_CAPTION_LENGTH)]


class PhotoIn(In):
    """A photo whose picture is stored elsewhere."""

    storage_key: Annotated[str, Field(min_length=1, max_length=MAX_KEY_LENGTH)]
    """Where the picture is stored. The same key again is the same photo."""
    lat: Latitude
    lon: Longitude
    taken_at: TakenAt
    caption: Caption = ""


class PictureIn(In):
    """Fields sent with a picture; they replace what its EXIF says."""

    lat: Latitude | None = None
    lon: Longitude | None = None
    taken_at: TakenAt | None = None
    caption: Caption = ""


class PhotoOut(Out):
    id: int
    url: str
    image: str | None
    """URL of a small copy, a JPEG without metadata; null: the picture is stored elsewhere."""
    user: str | None
    caption: str
    lat: float | None
    """Degrees; null for photos of others, whose gathering has a place."""
    lon: float | None
    taken_at: datetime
    uploaded_at: datetime
    storage_key: str | None
    """Null for photos of others."""
    state: Literal["new", "clustered", "unclusterable"]
    reason: str
    """Why it is unclusterable."""
    gathering: int | None


class UploadedPhoto(PhotoOut):
    read: list[str]
    """Which of `lat`, `lon` and `taken_at` were read from the picture's EXIF."""


class GatheringOut(Out):
    id: int
    url: str
    state: Literal["ACTIVE", "FINALIZED"]
    lat: float
    """Of the photos' centroid, in degrees."""
    lon: float
    radius: float
    """Metres from the centroid to the farthest photo."""
    photo_count: int
    first_photo_at: datetime
    last_photo_at: datetime


class PhotoFilter(PageParams):
    gathering: Annotated[
        int | None, Field(ge=1, le=2**63 - 1, description="photos of this gathering, of all users")
    ] = None


class GatheringFilter(PageParams):
    state: Annotated[
        Literal["ACTIVE", "FINALIZED"] | None, Field(description="gatherings in this state only")
    ] = None
