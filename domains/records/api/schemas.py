"""The schemas of the API of depositions, records and sources."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from tailrace.domains.records.depositions.decisions import MAX_REASON
from tailrace.domains.records.depositions.metadata import Metadata
from tailrace.domains.records.depositions.submit import MAX_IDENTIFIER
from tailrace.jobs.models.schedule import LIMITS
from tailrace.net.ssrf_guard import MAX_URL_LENGTH
from tailrace.web.api.schemas import In, Out

Name = Annotated[str, Field(max_length=60)]
Kind = Annotated[str, Field(max_length=50, description="`oai_pmh` or `json`")]
Address = Annotated[
    str, Field(max_length=MAX_URL_LENGTH, description="a public URL that begins with https://")
]
Settings = Annotated[
    dict[str, Any],
    Field(max_length=50, description="settings of the format: docs/how-to/harvest-records.md"),
]
Cron = Annotated[
    str,
    Field(max_length=LIMITS["cron"], description="when the source is read: a cron expression, UTC"),
]


class DepositionIn(In):
    metadata: Metadata
    identifier: Annotated[str, Field(max_length=MAX_IDENTIFIER)] = ""
    """The identifier of your record, to deposit a new version; empty: a new record."""


class ReasonIn(In):
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON)]


class MetadataProblemOut(Out):
    field: str
    message: str


class FileOut(Out):
    id: int
    name: str
    media_type: str
    size: int
    """Size in bytes."""
    digest: str
    """SHA-256 in hexadecimal digits."""
    url: str


class DepositionOut(Out):
    id: int
    url: str
    identifier: str
    """The identifier of the record, which all its versions share."""
    state: str
    """submitted, valid, invalid, approved, published, rejected or superseded."""
    problems: list[MetadataProblemOut]
    """The problems of an invalid deposition. To fix them, deposit again with this identifier."""
    reason: str
    """The reason of a rejection or of a withdrawal."""
    is_deleted: bool
    submitted_at: datetime
    metadata: dict[str, Any]
    files: list[FileOut]
    record: int | None
    """The id of the record, if this is its current version."""


class RecordOut(Out):
    id: int
    url: str
    identifier: str
    version: int
    title: str
    description: str
    creators: list[str]
    keywords: list[str]
    language: str
    access: str
    datestamp: datetime
    published_at: datetime
    is_deleted: bool
    """Whether the record is withdrawn. Its title stays visible."""


class SourceIn(In):
    name: Name
    """The prefix of the identifiers of its records. It cannot be changed later."""
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
    """The name of an existing source, to leave out records that are unchanged."""
    kind: Kind
    address: Address
    settings: Settings = {}


class SourceOut(Out):
    id: int
    url: str
    name: str
    kind: str
    address: str
    """The URL may contain secrets: you see *** in their place unless you may change sources."""
    settings: dict[str, Any]
    cron: str
    is_active: bool
    state: str
    """new, reading, up to date or error."""
    cursor: dict[str, Any] | None
    """The position of the next page; null: the first page."""
    last_read_at: datetime | None
    """When the last page was read without an error."""
    completed_at: datetime | None
    """When the last page of a list was read."""
    next_pull_at: datetime | None
    late_seconds: int | None
    """Seconds since the source was due without being read; null: it is in time, or paused."""
    records_read: int
    """Records that were read of the current or latest list."""
    records_total: int | None
    """Records in that list, if the source tells the number."""
    last_error: str
    errors_in_row: int
    depositions: dict[str, int]
    """The number of the source's latest 1,000 depositions in each state."""


class PullOut(Out):
    event: int
    """The id of the event that requests the pull. Its jobs read the source."""
