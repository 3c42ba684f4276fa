from typing import Any

from pydantic import BaseModel, ConfigDict

from tailrace.events.types import EventType


class SandboxEvent(EventType):
    """The family of all that happens in the sandbox."""

    abstract = True


class Happened(SandboxEvent):
    """Something happened."""

    name = "test.happened"

    class Payload(BaseModel):
        model_config = ConfigDict(extra="forbid")
        who: str = ""
        n: int = 0
        tags: list[str] = []
        note: Any = None

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return payload.get("who", "")

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        return "n is below zero" if payload.get("n", 0) < 0 else ""


class HappenedAgain(Happened):
    """It happened once more: a subclass, for handlers of its base."""

    name = "test.happened_again"


class Remembered(Happened):
    """Quiet if it is of the past: if nobody is its actor."""

    name = "test.remembered"

    @classmethod
    def is_quiet(cls, event: Any) -> bool:
        return not event.actor


class Whispered(SandboxEvent):
    """Only handlers of the whole family are subscribed to it."""

    name = "test.whispered"


class Bought(EventType):
    """Something was bought: its jobs are found by the number of the order."""

    name = "test.bought"
    searchable = ["order", "customer"]

    class Payload(BaseModel):
        order: int
        customer: str = ""

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        return f"order:{payload['order']}"
