"""Store depositions and publish their events, hundreds in one transaction."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import transaction

from tailrace.db.query import prepared
from tailrace.db.sql.arrays import arrays, text_array
from tailrace.domains.records.depositions.events import publish_about
from tailrace.domains.records.event_types import DepositionSubmitted
from tailrace.events.publishing.validation import clean

MAX_IDENTIFIER = 500
"""Characters of an identifier."""


@dataclass(frozen=True)
class Draft:
    """A deposition to store."""

    identifier: str
    """The identifier of the record; for harvested records, see `harvested_identifier`."""
    datestamp: datetime
    metadata: dict[str, Any] = field(default_factory=dict)
    source_id: int | None = None
    source_identifier: str = ""
    submitted_by_id: int | None = None
    is_deleted: bool = False
    reason: str = ""
    request_key: str = ""
    file_digests: Sequence[str] = ()

    @cached_property
    def digest(self) -> str:
        """A hash of the content: metadata, files, and whether it withdraws the record."""
        content = [self.metadata, self.is_deleted, sorted(self.file_digests)]
        text = json.dumps(content, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def harvested_identifier(source_name: str, identifier: str) -> str:
    """Return the identifier of the record with this identifier at its source."""
    return f"{source_name}:{identifier}"


OF_EVENTS = "events/"
"""Prefix of identifiers of records that are made from events of other domains. It is unique: names
of sources contain no slash, and records of users have random identifiers."""


def identifier_of_subject(subject: str) -> str:
    """Return the identifier of the record for the events with this subject."""
    return f"{OF_EVENTS}{subject}"[:MAX_IDENTIFIER]


_COLUMNS = (
    "identifier", "datestamp", "source_id", "source_identifier", "submitted_by_id", "is_deleted",
    "reason", "request_key", "digest",
)  # fmt: skip
_INSERT = """
INSERT INTO tailrace_records_deposition (
  identifier, datestamp, source_id, source_identifier, submitted_by_id, is_deleted, reason,
  request_key, digest, metadata, state, problems)
SELECT new.*, 'submitted', '[]'::jsonb
FROM unnest(
  %(identifier)s::text[], %(datestamp)s::timestamptz[], %(source_id)s::bigint[],
  %(source_identifier)s::text[], %(submitted_by_id)s::bigint[], %(is_deleted)s::bool[],
  %(reason)s::text[], %(request_key)s::text[], %(digest)s::text[], %(metadata)s::jsonb[]
) AS new (identifier, datestamp)
ORDER BY identifier, datestamp
ON CONFLICT (identifier, datestamp, digest) DO NOTHING
RETURNING id
"""


def _storable(metadata: dict[str, Any]) -> str:
    """Return the metadata as JSON, with characters replaced that PostgreSQL cannot store."""
    text = json.dumps(metadata)
    return json.dumps(clean(metadata)[0]) if "\\u0000" in text or "\\ud" in text else text


def submit(drafts: Sequence[Draft], cause_id: int | None = None) -> list[int]:
    """Store new depositions and publish an event for each; return their ids.

    Depositions that exist already (same identifier, datestamp and content) are left out. Joins the
    caller's transaction. Characters that PostgreSQL cannot store are replaced.
    """
    if not drafts:
        return []
    metadata = [_storable(draft.metadata) for draft in drafts]
    columns = arrays(drafts, _COLUMNS, {"source_id", "submitted_by_id"})
    with transaction.atomic():
        rows = prepared(_INSERT, **columns, metadata=text_array(metadata))
        ids = [id for (id,) in rows]
        publish_about(DepositionSubmitted, ids, cause_id=cause_id)
    return ids
