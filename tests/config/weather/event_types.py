from pydantic import BaseModel

from events.types import EventType
from subscriptions.types.subscribable import Subscribable


class Measured(Subscribable, EventType):
    """A station measured the temperature."""

    name = "weather.measured"
    can_pager = True

    class Payload(BaseModel):
        degrees: int
