from pydantic import Field

from tailrace.environment.settings import AppSettings


class EventsSettings(AppSettings):
    """The maximum size of events, and how long they are kept."""

    prefixes = ("EVENTS_",)

    EVENTS_MAX_PAYLOAD_BYTES: int = Field(65_536, ge=1024, le=16_777_216)
    """bytes that the payload of an event may have"""
    EVENTS_RETENTION_DAYS: int = Field(90, ge=1, le=36_500)
    """days that events are kept"""
