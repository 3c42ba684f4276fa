"""What the API of protection takes and returns."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field

from tailrace.domains.protection.watchlist.values import MAX_LENGTH
from tailrace.web.api.pagination import PageParams
from tailrace.web.api.schemas import In, Out

State = Literal["new", "known", "resolved"]


class AlertOut(Out):
    id: int
    kind: str
    source: str
    severity: str
    """info, warning or critical."""
    title: str
    to_do: str
    names: str
    """What it is about, such as the names of leaks; never a watched value."""
    raised_at: datetime


class ItemIn(In):
    kind: Literal["email", "phone", "domain", "username", "ssn"]
    value: Annotated[str, Field(min_length=1, max_length=MAX_LENGTH)]


class ItemChangeIn(In):
    active: bool
    """Whether scans look it up."""


class ItemOut(Out):
    id: int
    kind: str
    masked: str
    """The value in part; nothing returns the whole."""
    active: bool
    is_readable: bool
    """False: the key that encrypted it is lost, so it is not looked up. Remove it and add it
    again."""
    created_at: datetime


class ExposuresQuery(PageParams):
    state: Annotated[State | None, Field(description="only those of this state")] = None


class ExposureChangeIn(In):
    state: State


class ExposureOut(Out):
    id: int
    item: int
    masked: str
    state: str
    severity: str
    first_at: datetime
    breach: str
    domain: str
    breached_on: date | None
    data_classes: list[str]
    """What was lost, in the words of the source."""
    to_do: list[str]


class ScanIn(In):
    handler: Annotated[str, Field(max_length=200, description="protection.darkwatch_scan …")]


class ScanOut(Out):
    job: int
