"""What the API of sources takes and returns."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from tailrace.jobs.models.schedule import LIMITS
from tailrace.net.ssrf_guard import MAX_URL_LENGTH
from tailrace.web.api.schemas import In, Out

Name = Annotated[str, Field(max_length=60)]
Kind = Annotated[str, Field(max_length=50, description="`oai_pmh` or `json`")]
Address = Annotated[str, Field(max_length=MAX_URL_LENGTH, description="public, with https://")]
Settings = Annotated[
    dict[str, Any], Field(max_length=50, description="of the format, see docs/harvesting.md")
]
Cron = Annotated[str, Field(max_length=LIMITS["cron"], description="when it is read, in UTC")]


class SourceIn(In):
    name: Name
    """Begins the identifiers of its records, and stays."""
    kind: Kind
    address: Address
    settings: Settings = {}
    cron: Cron = "0 3 * * *"


class SourceChangeIn(In):
    kind: Kind | None = None
    address: Address | None = None
    settings: Settings | None = None
    cron: Cron | None = None
    is_active: bool | None = None


class SourceTrialIn(In):
    name: Name = ""
    """Of a source that is there: what it has already is left out."""
    kind: Kind
    address: Address
    settings: Settings = {}


class SourceOut(Out):
    id: int
    url: str
    name: str
    kind: str
    address: str
    """Scheme, host and port alone for those who may not change sources: it may have a secret."""
    settings: dict[str, Any]
    cron: str
    is_active: bool
    state: str
    """new, reading, up to date or error."""
    cursor: dict[str, Any] | None
    """Where the next page begins; null: at the beginning."""
    last_read_at: datetime | None
    """When a page was read last without an error."""
    completed_at: datetime | None
    next_pull_at: datetime | None
    late_seconds: int | None
    """Since when it ought to have been read; null: it is in time, or paused."""
    records_read: int
    """Of the list that is being read, or was read last."""
    records_total: int | None
    """As the source says."""
    last_error: str
    errors_in_row: int
    depositions: dict[str, int]
    """Of its latest 1,000, by state."""


class PullOut(Out):
    event: int
    """The event that asks for it; its jobs read the source."""


class TriedProblemOut(Out):
    field: str
    message: str


class TriedRecordOut(Out):
    identifier: str
    title: str
    is_deleted: bool
    is_new: bool
    """Whether it would be the first version."""
    problems: list[TriedProblemOut]
    """Why its deposition would be invalid."""


class TrialOut(Out):
    problem: str
    """Why the page could not be read; empty: it could."""
    read: int
    """Records of the page."""
    total: int | None
    is_last: bool
    submitted: int
    """How many of them are new or have changed."""
    records: list[TriedRecordOut]
    """The first 20 of these."""
