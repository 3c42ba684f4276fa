from pydantic import BaseModel

from tailrace.events.types import EventType
from tailrace.subscriptions.types.subscribable import Subscribable


class Measured(Subscribable, EventType):
    """A station measured the temperature."""

    name = "weather.measured"
    can_pager = True

    class Payload(BaseModel):
        degrees: int
