from events.types import EventType
from subscriptions.audible import Audible


class PhotosEvent(Audible, EventType):
    """Something happened to photos."""

    abstract = True
