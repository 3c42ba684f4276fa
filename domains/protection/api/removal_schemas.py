"""Inputs and outputs of the API of removals."""

from datetime import date, datetime
from typing import Annotated

from pydantic import Field

from tailrace.domains.protection.services.removals.brokers import MAX_BROKERS
from tailrace.domains.protection.services.removals.person import Person
from tailrace.web.api.schemas import In, Out


class BrokerOut(Out):
    key: str
    names: list[str]
    url: str
    removal_url: str
    method: str
    """mail, form or manual."""
    given: list[str]
    """The fields of the person that the broker receives."""
    working_as_of: date
    """When somebody last tested the broker."""
    sample: bool
    """True: the broker is a sample and does not exist."""


class RemovalsIn(In):
    brokers: Annotated[list[str], Field(min_length=1, max_length=MAX_BROKERS)]
    """The keys of the brokers."""
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
    """The next step: submit, confirm or verify."""
    note: str
    """Why the request is in this state."""
    to_do: str
    """What you have to do; empty if there is nothing to do."""
    created_at: datetime
    changed_at: datetime
    submitted_at: datetime | None
    checked_at: datetime | None
    """When the broker's listing was last checked."""
    next_at: datetime | None
    changes: list[RemovalChangeOut] = []
    """Newest first; empty in lists."""
