"""Store a page of a source: its new and changed records, and the new cursor."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import database_now, execute, prepared
from tailrace.db.sql.arrays import text_array
from tailrace.db.sql.plans import probe
from tailrace.domains.records.depositions.submit import Draft, harvested_identifier, submit
from tailrace.domains.records.sources.formats import HarvestedRecord, Page

SHORTEST_STEP = timedelta(microseconds=1)
FIRST_WAIT, LONGEST_WAIT = 10.0, 3600.0
"""Minimum and maximum seconds until a source is read again after an error. The wait doubles with
each error in a row."""
Cursor = Mapping[str, Any]


class SourceChanged(Exception):
    """While the page was read, the source was paused, changed, or read by another job. Nothing is
    stored."""


@dataclass(frozen=True, slots=True)
class Stored:
    submitted: int
    """Number of new depositions."""
    read: int
    """Number of records that were read of the current list."""
    total: int | None
    """Number of records in the list, if the source tells the number."""


_MOVE = f"""
UPDATE tailrace_records_source
SET cursor = %(new)s::jsonb, last_read_at = {clock.NOW}, last_error = '', errors_in_row = 0,
    records_read = CASE WHEN list_goes_on THEN records_read ELSE 0 END + %(count)s::int,
    records_total = coalesce(%(total)s::bigint, CASE WHEN list_goes_on THEN records_total END),
    list_goes_on = NOT %(is_last)s::bool,
    completed_at = CASE WHEN %(is_last)s::bool THEN {clock.NOW} ELSE completed_at END
WHERE id = %(id)s AND is_active AND url = %(url)s
  AND cursor IS NOT DISTINCT FROM %(old)s::jsonb
RETURNING records_read, records_total
"""
_FAIL = """
UPDATE tailrace_records_source
SET last_error = %(error)s, errors_in_row = errors_in_row + 1,
    cursor = coalesce(%(restart_at)s::jsonb, cursor)
WHERE id = %(id)s AND cursor IS NOT DISTINCT FROM %(old)s::jsonb
RETURNING errors_in_row
"""
_NOTE = "UPDATE tailrace_records_source SET last_error = %(error)s WHERE id = %(id)s"
_LATEST = f"""
SELECT name, datestamp, digest, is_deleted
FROM unnest(%(identifiers)s::text[]) AS name, LATERAL (
  SELECT datestamp, digest, is_deleted FROM tailrace_records_deposition
  WHERE {probe("identifier", "name")} ORDER BY identifier, datestamp DESC, id DESC LIMIT 1
) latest
"""


@dataclass(frozen=True, slots=True)
class ReadSource:
    """The values of a source at the time when a page was requested."""

    id: int
    name: str
    url: str
    cursor: Cursor | None


def store_page(source: ReadSource, page: Page, cause_id: int | None) -> Stored:
    """Submit the page's records and store its cursor, in one transaction.

    Unchanged records, and deletions of unknown records, are left out. Raises SourceChanged if the
    source's cursor has changed since the page was requested.
    """
    with transaction.atomic():
        rows = prepared(
            _MOVE,
            id=source.id,
            url=source.url,
            old=_json(source.cursor),
            new=_json(page.cursor),
            count=len(page.records),
            total=page.total,
            is_last=page.is_last,
        )
        if not rows:
            raise SourceChanged(
                f"{source.name} was changed or read by another job at the same time"
            )
        submitted = submit(changed_records(source, page.records), cause_id)
    [(read, total)] = rows
    return Stored(len(submitted), read, total)


def record_error(source: ReadSource, error: str, restart_at: Cursor | None = None) -> int:
    """Store the error in the source's row; return the number of errors in a row.

    `restart_at` is a new cursor for the next read; None: the cursor stays.
    """
    rows = prepared(
        _FAIL,
        id=source.id,
        old=_json(source.cursor),
        error=_text(error),
        restart_at=_json(restart_at),
    )
    return int(rows[0][0]) if rows else 1


def record_wait(source: ReadSource, reason: str) -> None:
    """Store the reason for a wait in the source's row, without counting an error."""
    execute(_NOTE, id=source.id, error=_text(reason))


def wait_after(errors_in_row: int) -> float:
    """Return the seconds until the next read after this number of errors in a row."""
    return min(FIRST_WAIT * 2 ** min(errors_in_row - 1, 20), LONGEST_WAIT)


def changed_records(source: ReadSource, records: Sequence[HarvestedRecord]) -> list[Draft]:
    """Return drafts of the records that differ from their latest versions.

    A draft's datestamp is always later than that of the latest version: a record may change twice
    within the granularity of the source's datestamps, even back to an earlier content.
    """
    now = database_now()
    names = [harvested_identifier(source.name, record.identifier) for record in records]
    rows = prepared(_LATEST, identifiers=text_array(set(names)))
    latest = {name: (datestamp, digest, deleted) for name, datestamp, digest, deleted in rows}
    changed = []
    for name, record in zip(names, records, strict=True):
        last_datestamp, last_digest, was_deleted = latest.get(name, (None, "", True))
        datestamp = record.datestamp or now
        if last_datestamp is not None:
            datestamp = max(datestamp, last_datestamp + SHORTEST_STEP)
        draft = Draft(
            name,
            datestamp,
            dict(record.metadata),
            source_id=source.id,
            source_identifier=record.identifier,
            is_deleted=record.is_deleted,
        )
        if draft.digest != last_digest and not (draft.is_deleted and was_deleted):
            latest[name] = datestamp, draft.digest, draft.is_deleted
            changed.append(draft)
    return changed


def _json(value: Cursor | None) -> str | None:
    return None if value is None else json.dumps(value)


def _text(message: str) -> str:
    return message[:1000].replace("\0", "\ufffd")
