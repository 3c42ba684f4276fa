import os
from typing import Any

from pydantic import BaseModel, ConfigDict

from tailrace.events.types import EventType

NEW_CODE = os.environ.get("CHAOS_CODE") == "new"


class ChaosEvent(EventType):
    """What the clients say; of the new code's events, a word more."""

    abstract = True
    schema_version = 2 if NEW_CODE else 1

    class Payload(BaseModel):
        model_config = ConfigDict(extra="forbid")
        client: str
        number: int
        if NEW_CODE:
            words: list[str]

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Which client published it."""
        return str(payload["client"])


class Published(ChaosEvent):
    """A client published something."""

    name = "chaos.published"


class Echoed(ChaosEvent):
    """A handler published it again."""

    name = "chaos.echoed"
