"""The event types of photos and gatherings."""

from domains.photos.event_types.base import PhotosEvent
from domains.photos.event_types.gathering import (
    GatheringEvent,
    GatheringFinalized,
    GatheringStarted,
)
from domains.photos.event_types.photo import Uploaded

__all__ = [
    "GatheringEvent",
    "GatheringFinalized",
    "GatheringStarted",
    "PhotosEvent",
    "Uploaded",
]
