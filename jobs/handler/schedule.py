"""The schedules of handlers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule with a fixed interval."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule with a cron expression of five fields, in a time zone."""

    expression: str
    tz: str = "UTC"
    catch_up: str = "latest"
