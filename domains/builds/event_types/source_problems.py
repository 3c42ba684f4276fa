"""Events about problems of a source: unknown types, lost notifications, a reset log.

Each has a `problem`, so it is shown on the overview until it is acknowledged. They are not
BuildsEvents: no jobs are created for them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tailrace.events.publish import Recorded
from tailrace.events.readers import NOBODY, Readers
from tailrace.events.types import EventType


class Unknown(EventType):
    """A source sent an event of an unknown type"""

    name = "builds.unknown"
    api_records = False

    class Payload(BaseModel):
        raw_type: str
        data: Any = None

    @classmethod
    def readers(cls, events: Sequence[Recorded]) -> Mapping[int, Readers | None]:
        """Return that nobody may: what it names is not known."""
        return {event.id: NOBODY for event in events}

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        return f"unknown type {payload['raw_type'][:100]!r}"


class SyncLost(EventType):
    """Notifications of a backend are lost: they were pruned before they were read"""

    name = "builds.sync_lost"
    api_records = False

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
    api_records = False

    class Payload(BaseModel):
        backend: str
        epoch: int
        """The number of this backend's log, from 1; part of its events' source."""
        was_at: int
        """The number that was to be read next."""
        begins_at: int
        """The number from which its entries are not those that were read."""
        end: int | None = None
        """The number after its last entry."""
        agreed: bool = False
        """Whether the entry before `begins_at` is the one that was read under this number."""

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"backend/{payload['backend']}"

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        was_at, begins_at, end = payload["was_at"], payload["begins_at"], payload["end"]
        lost = f"{was_at - begins_at} entries" if payload["agreed"] else "the old log"
        new = "" if end is None else f", {max(end - begins_at, 0)} new ones came instead"
        return (
            f"the log of {payload['backend']} was cut or replaced: from {begins_at} on {lost}"
            f" (up to {was_at - 1}) {'are' if payload['agreed'] else 'is'} gone{new}"
        )
