"""The schemas of the API of depositions and records."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from tailrace.domains.records.depositions.decisions import MAX_REASON
from tailrace.domains.records.depositions.metadata import Metadata
from tailrace.domains.records.depositions.submit import MAX_IDENTIFIER
from tailrace.web.api.schemas import In, Out


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
