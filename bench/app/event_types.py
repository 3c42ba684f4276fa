from pydantic import BaseModel

from tailrace.events.types import EventType


class Measured(EventType):
    """An event with four jobs."""

    name = "bench.measured"

    class Payload(BaseModel):
        number: int
        text: str = ""


class Aside(EventType):
    """An event of the other queues in the herd benchmark."""

    name = "bench.aside"

    class Payload(BaseModel):
        number: int
