from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from domains.photos.event_types.base import PhotosEvent


class Uploaded(PhotosEvent):
    """Photo uploaded"""

    name = "photos.uploaded"

    class Payload(BaseModel):
        """What is known of the photo; the picture itself is found by its storage key."""

        model_config = ConfigDict(extra="forbid")
        photo: int
        lat: float = Field(ge=-90, le=90)
        lon: float = Field(ge=-180, le=180)
        taken_at: AwareDatetime
        storage_key: str

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return e.g. `photo/7`."""
        return f"photo/{payload['photo']}"
