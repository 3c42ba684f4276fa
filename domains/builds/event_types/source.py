"""Events about the sources themselves: what could not be read, or not be understood.

Each has a `problem`, so operators see it on the overview until they acknowledge it. They are no
BuildsEvents: nothing is owed because of them.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from events.types import EventType


class Unknown(EventType):
    """A source sent something of a type that nobody knows"""

    name = "builds.unknown"

    class Payload(BaseModel):
        raw_type: str
        data: Any = None

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        return f"nobody knows the type {payload['raw_type'][:100]!r}"


class SyncLost(EventType):
    """Notifications of a backend are gone: they were pruned before they were read"""

    name = "builds.sync_lost"

    class Payload(BaseModel):
        model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)
        backend: str
        first: int = Field(alias="from")
        end: int = Field(alias="to")
        """The first number that is there again."""

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"backend/{payload['backend']}"

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        first, end = payload["from"], payload["to"]
        return f"{end - first} notifications of {payload['backend']} are lost: {first} to {end - 1}"


class LogReset(EventType):
    """The notification log of a backend began anew; its numbers are used again"""

    name = "builds.log_reset"

    class Payload(BaseModel):
        backend: str
        epoch: int
        """Counts the logs of this backend; part of its events' source."""
        was_at: int
        """The number that was to be read next."""
        begins_at: int
        """The number that the new log is read from."""

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"backend/{payload['backend']}"

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        return (
            f"the log of {payload['backend']} began anew: {payload['was_at']} was to be read next,"
            f" but it ended before; read from {payload['begins_at']}"
        )
