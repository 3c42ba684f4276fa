"""Requests and responses of the photos API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tailrace.domains.photos.uploads.deletion.delete_photos import MAX_PHOTOS
from tailrace.domains.photos.uploads.validation import MAX_CAPTION_LENGTH, MAX_KEY_LENGTH
from tailrace.web.api.pagination import PageParams
from tailrace.web.api.schemas import In, Out, Time

Latitude = Annotated[float, Field(ge=-90, le=90, description="degrees, north is positive")]
Longitude = Annotated[float, Field(ge=-180, le=180, description="degrees, east is positive")]
Caption = Annotated[str, Field(max_length=MAX_CAPTION_LENGTH)]


class PhotoIn(In):
    """A photo whose picture is stored elsewhere."""

    storage_key: Annotated[str, Field(min_length=1, max_length=MAX_KEY_LENGTH)]
    """Where the picture is stored. Two uploads with the same key are the same photo."""
    lat: Latitude
    lon: Longitude
    taken_at: Time
    caption: Caption = ""


class PictureIn(In):
    """Fields sent with a picture; they replace the values in its EXIF."""

    model_config = ConfigDict(strict=False)  # a form has only texts
    lat: Latitude | None = None
    lon: Longitude | None = None
    taken_at: Time | None = None
    caption: Caption = ""
    place_from_timeline: bool = False
    """Store the picture even if its location is not known. It gets its location from your timeline
    as soon as your timeline has points within 10 minutes of that time."""


class PhotoOut(Out):
    id: int
    url: str
    image: str | None
    """URL of a small copy, a JPEG without metadata; null if the picture is stored elsewhere."""
    user: str | None
    caption: str
    lat: float | None
    """Degrees; null if the photo has no location yet, and for photos of other users: see the
    location of their gathering."""
    lon: float | None
    taken_at: datetime
    uploaded_at: datetime
    storage_key: str | None
    """Null for photos of other users."""
    state: Literal["unplaced", "new", "clustered", "unclusterable"]
    reason: str
    """Why the photo is unclusterable."""
    gathering: int | None


class UploadedPhoto(PhotoOut):
    read: list[str]
    """Which of `lat`, `lon` and `taken_at` were read from the picture's EXIF."""


class PhotosToDelete(In):
    ids: Annotated[
        list[Annotated[int, Field(ge=1, le=2**63 - 1)]],
        Field(min_length=1, max_length=MAX_PHOTOS, description="ids of your photos"),
    ]


class DeletedPhotos(Out):
    deleted: list[int]
    """Ids of the deleted photos."""


class GatheringOut(Out):
    id: int
    url: str
    state: Literal["ACTIVE", "FINALIZED"]
    lat: float
    """Latitude of the shown location, in degrees: the centre of a cell of at least
    PHOTOS_PLACE_GRID_M. It changes only after several photos have joined or left."""
    lon: float
    radius: float
    """Metres around the shown location, a multiple of PHOTOS_PLACE_GRID_M."""
    photo_count: int
    first_photo_at: datetime
    last_photo_at: datetime


class PhotoFilter(PageParams):
    gathering: Annotated[
        int | None, Field(ge=1, le=2**63 - 1, description="photos of this gathering, of all users")
    ] = None


class GatheringFilter(PageParams):
    state: Annotated[
        Literal["ACTIVE", "FINALIZED"] | None, Field(description="only gatherings in this state")
    ] = None
