"""Events about problems of a source: unknown event types, lost notifications, a reset log.

Each event has a `problem`, so the overview shows it until an operator acknowledges it. The types
are not BuildsEvents, so the events have no jobs.
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
        """Return NOBODY for each event: the projects in an unknown payload cannot be recognized."""
        return {event.id: NOBODY for event in events}

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        return f"unknown type {payload['raw_type'][:100]!r}"


class BackendProblem:
    """Mixed into types whose subject is a backend."""

    api_records = False

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"backend/{payload['backend']}"


class SyncLost(BackendProblem, EventType):
    """Notifications of a backend were deleted before they were read"""

    name = "builds.sync_lost"

    class Payload(BaseModel):
        model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)
        backend: str
        first: int = Field(alias="from")
        end: int = Field(alias="to")
        """The first number after the lost notifications."""

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        first, end = payload["from"], payload["to"]
        return f"{end - first} notifications of {payload['backend']} are lost: {first} to {end - 1}"


class LogReset(BackendProblem, EventType):
    """The notification log of a backend was cut or replaced, so its numbers are used again"""

    name = "builds.log_reset"

    class Payload(BaseModel):
        backend: str
        epoch: int
        """The number of the new log, from 1, which is part of the events' source."""
        was_at: int
        """The next number to read in the old log."""
        begins_at: int
        """The first number at which the new log differs from the old one."""
        end: int | None = None
        """The number after the last entry of the new log."""
        agreed: bool = False
        """Whether the entries before `begins_at` are the same in both logs."""

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        was_at, begins_at, end = payload["was_at"], payload["begins_at"], payload["end"]
        backend, last = payload["backend"], was_at - 1
        if payload["agreed"]:
            removed = f"{was_at - begins_at} entries ({begins_at} to {last}) were removed"
        else:
            removed = f"all entries of the old log (up to {last}) were removed"
        new = "" if end is None else f", and {max(end - begins_at, 0)} new entries were added"
        return f"the log of {backend} was cut or replaced: {removed}{new}"
