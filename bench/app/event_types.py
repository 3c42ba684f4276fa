from pydantic import BaseModel

from events.types import EventType


class Measured(EventType):
    """Something of which four others are told."""

    name = "bench.measured"

    class Payload(BaseModel):
        number: int
        text: str = ""


class Aside(EventType):
    """What goes on beside a herd."""

    name = "bench.aside"

    class Payload(BaseModel):
        number: int
