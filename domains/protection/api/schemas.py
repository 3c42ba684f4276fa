"""Inputs and outputs of the API of protection."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field

from tailrace.domains.protection.services.watchlist.values import MAX_LENGTH
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
    """Names in the alert, such as names of leaks; never a watched value."""
    raised_at: datetime


class ItemIn(In):
    kind: Literal["email", "phone", "domain", "username", "ssn"]
    value: Annotated[str, Field(min_length=1, max_length=MAX_LENGTH)]


class ItemChangeIn(In):
    active: bool
    """Whether scans look up the value."""


class ItemOut(Out):
    id: int
    kind: str
    masked: str
    """The value in masked form. The API never returns the whole value."""
    active: bool
    is_readable: bool
    """False if the key that encrypted the value is lost, so that scans cannot look it up. Remove it
    and add it again."""
    created_at: datetime


class ExposuresQuery(PageParams):
    state: Annotated[State | None, Field(description="only exposures in this state")] = None


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
    """The kinds of lost data, as the source names them."""
    to_do: list[str]


class ScanIn(In):
    handler: Annotated[str, Field(max_length=200, description="protection.darkwatch_scan …")]


class ScanOut(Out):
    job: int
