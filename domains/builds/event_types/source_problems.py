"""Events about problems of a source: unknown types, lost notifications, a reset log.

Each has a `problem`, so it is shown on the overview until it is acknowledged. They are not
BuildsEvents: no jobs are created for them.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from events.types import EventType


class Unknown(EventType):
    """A source sent an event of an unknown type"""

    name = "builds.unknown"

    class Payload(BaseModel):
        raw_type: str
        data: Any = None

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        return f"unknown type {payload['raw_type'][:100]!r}"


class SyncLost(EventType):
    """Notifications of a backend are lost: they were pruned before they were read"""

    name = "builds.sync_lost"

    class Payload(BaseModel):
        model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)
        backend: str
        first: int = Field(alias="from")
        end: int = Field(alias="to")
        """The first number that exists again."""

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"backend/{payload['backend']}"

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        first, end = payload["from"], payload["to"]
        return f"{end - first} notifications of {payload['backend']} are lost: {first} to {end - 1}"


class LogReset(EventType):
    """The notification log of a backend was reset; its numbers are used again"""

    name = "builds.log_reset"

    class Payload(BaseModel):
        backend: str
        epoch: int
        """The number of this backend's log, from 1; part of its events' source."""
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
            f"the log of {payload['backend']} was reset: number {payload['was_at']} was next, but"
            f" it ended before; reading continues from {payload['begins_at']}"
        )
