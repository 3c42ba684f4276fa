"""What the API of removals takes and returns."""

from datetime import date, datetime
from typing import Annotated

from pydantic import Field

from tailrace.domains.protection.removals.brokers import MAX_BROKERS
from tailrace.domains.protection.removals.person import Person
from tailrace.web.api.schemas import In, Out


class BrokerOut(Out):
    key: str
    names: list[str]
    url: str
    removal_url: str
    method: str
    """mail, form or manual."""
    given: list[str]
    """What it is given of you."""
    working_as_of: date
    """When somebody last tried it."""
    sample: bool
    """It leads nowhere."""


class RemovalsIn(In):
    brokers: Annotated[list[str], Field(min_length=1, max_length=MAX_BROKERS)]
    """Their keys."""
    person: Person


class RemovalChangeOut(Out):
    at: datetime
    state: str
    note: str


class RemovalOut(Out):
    id: int
    broker: str
    broker_name: str
    state: str
    """pending, submitted, awaiting_confirmation, removed, rejected, needs_person or withdrawn."""
    step: str
    """What is next: submit, confirm or verify."""
    note: str
    """Why it is in this state."""
    to_do: str
    """What you have to do; empty: nothing."""
    created_at: datetime
    changed_at: datetime
    submitted_at: datetime | None
    checked_at: datetime | None
    """When the broker's listing was last looked at."""
    next_at: datetime | None
    changes: list[RemovalChangeOut] = []
    """The newest first; empty in lists."""
