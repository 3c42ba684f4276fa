"""What the API of records takes and returns."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from tailrace.domains.records.depositions.decisions import MAX_REASON
from tailrace.domains.records.depositions.submit import MAX_IDENTIFIER
from tailrace.domains.records.metadata import Metadata
from tailrace.web.api.schemas import In, Out


class DepositionIn(In):
    metadata: Metadata
    identifier: Annotated[str, Field(max_length=MAX_IDENTIFIER)] = ""
    """Of your own record, for a new version of it; empty: a new record."""


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
    """Bytes."""
    digest: str
    """SHA-256 in hexadecimal digits."""
    url: str


class DepositionOut(Out):
    id: int
    url: str
    identifier: str
    """Of the record; all its versions have it in common."""
    state: str
    """submitted, valid, invalid, approved, published, rejected or superseded."""
    problems: list[MetadataProblemOut]
    """Why it is invalid. Send a corrected one with the same identifier."""
    reason: str
    """Why it was rejected, or withdraws the record."""
    is_deleted: bool
    submitted_at: datetime
    metadata: dict[str, Any]
    files: list[FileOut]
    record: int | None
    """The record that shows this version."""


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
    """It is withdrawn: its title stays."""
