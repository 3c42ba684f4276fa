"""Harvest an OAI-PMH 2.0 repository: read the records that changed since the last harvest.

https://www.openarchives.org/OAI/openarchivesprotocol.html

A harvest requests the records that changed in a fixed period. The period ends at the current time
of the repository's clock, so that later changes are left to the next harvest. It begins shortly
before the end of the last period: both ends are inclusive, and repositories write datestamps before
they commit. Records that are read again are recognised by their content.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from tailrace.domains.records.sources.dublin_core import to_metadata
from tailrace.domains.records.sources.fetch import fetch
from tailrace.domains.records.sources.formats import BadPage, HarvestedRecord, Page, SourceFormat
from tailrace.domains.records.sources.oai_response import (
    OaiRecord,
    OaiResponse,
    parse_datestamp,
    parse_response,
)
from tailrace.domains.records.sources.token_trail import EndlessList, TokenTrail
from tailrace.jobs.destinations.request_errors import RequestRefused

ACCEPT = "text/xml, application/xml;q=0.9"
OVERLAP = timedelta(minutes=5)
"""Overlap of the periods of two harvests, if the repository's datestamps have seconds."""
MAX_RESTARTS = 3
"""Maximum number of restarts of a harvest whose resumption tokens are not accepted."""
MAX_EMPTY_PAGES = 20
"""Maximum number of pages in a row without records but with a resumption token."""
_SPEC = r"^[A-Za-z0-9_.!~*'()\-]+$"
_SET_SPEC = r"^([A-Za-z0-9_.!~*'()\-]+(:[A-Za-z0-9_.!~*'()\-]+)*)?$"


class Cursor(BaseModel):
    """The position in the harvests of a repository."""

    done_until: AwareDatetime | None = None
    """All changes up to this time have been read; None: no harvest is complete."""
    begins: AwareDatetime | None = None
    """The beginning of the current harvest's period; None: no limit."""
    ends: AwareDatetime | None = None
    """The end of the current harvest's period; None: no harvest has begun."""
    granularity: Literal["day", "second"] = "second"
    token: str = ""
    """The resumptionToken of the next page; empty: the first page."""
    trail: TokenTrail = Field(default_factory=TokenTrail)
    empty_pages: int = 0
    restarts: int = 0
    deletions: str = ""
    """The repository's deletedRecord: whether it lists deleted records."""


class OaiPmh(SourceFormat):
    """An OAI-PMH 2.0 repository with Dublin Core metadata."""

    name = "oai_pmh"
    label = "OAI-PMH"

    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

        metadata_prefix: str = Field("oai_dc", pattern=_SPEC, max_length=100)
        set: str = Field("", pattern=_SET_SPEC, max_length=500)
        """The setSpec of the set to read; empty: all records."""
        since: date | None = None
        """Only records that changed on this day or later are read."""

    async def read(self, url: str, settings: Settings, cursor: Mapping[str, Any]) -> Page:
        at = Cursor.model_validate(cursor)
        if at.ends is None:
            at = await self._begin(url, settings, at)
        try:
            response = await _request(url, "ListRecords", _arguments(settings, at))
            _raise_errors(response.errors)
        except _TokenRefused as error:
            return _restarted(at, error)
        if "noRecordsMatch" in response.errors:
            response.records, response.token = [], ""
        records = [_to_record(record) for record in response.records]
        if not response.token:
            return Page(_finished(at), records, is_last=True, total=response.total)
        return Page(_continued(at, response).model_dump(mode="json"), records, total=response.total)

    async def _begin(self, url: str, settings: Settings, at: Cursor) -> Cursor:
        """Send an Identify request, and return the cursor of a new harvest."""
        response = await _request(url, "Identify", [])
        _raise_errors(response.errors)
        granularity = response.values.get("granularity", "")
        if granularity not in ("YYYY-MM-DD", "YYYY-MM-DDThh:mm:ssZ"):
            raise BadPage(f"has the granularity {granularity[:50]!r}, which OAI-PMH does not allow")
        by_day = granularity == "YYYY-MM-DD"
        ends = response.response_date
        since = parse_datestamp(settings.since.isoformat()) if settings.since else None
        earliest = parse_datestamp(response.values.get("earliestDatestamp", ""))
        begins = since
        if at.done_until is not None:
            last = at.done_until if by_day else at.done_until - OVERLAP
            begins = max(filter(None, (last, since, earliest)))
        return Cursor(
            done_until=at.done_until,
            begins=min(begins, ends) if begins else None,
            ends=ends,
            granularity="day" if by_day else "second",
            deletions=response.values.get("deletedRecord", "")[:20],
        )


class _TokenRefused(Exception):
    """The repository answered badResumptionToken."""


async def _request(url: str, verb: str, arguments: Sequence[tuple[str, str]]) -> OaiResponse:
    answer = await fetch(url, [("verb", verb), *arguments], accept=ACCEPT)
    return await asyncio.to_thread(parse_response, answer.body)


def _arguments(settings: OaiPmh.Settings, at: Cursor) -> list[tuple[str, str]]:
    """Return the arguments of ListRecords. A resumption token excludes other arguments."""
    if at.token:
        return [("resumptionToken", at.token)]
    arguments = [("metadataPrefix", settings.metadata_prefix)]
    if settings.set:
        arguments.append(("set", settings.set))
    for name, moment in (("from", at.begins), ("until", at.ends)):
        if moment is not None:
            arguments.append((name, _datestamp(moment, at.granularity)))
    return arguments


def _datestamp(moment: datetime, granularity: str) -> str:
    return f"{moment:%Y-%m-%d}" if granularity == "day" else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _raise_errors(errors: Mapping[str, str]) -> None:
    """Raise _TokenRefused or RequestRefused for the errors of a response, except noRecordsMatch."""
    if "badResumptionToken" in errors:
        raise _TokenRefused(errors["badResumptionToken"])
    for code, message in errors.items():
        if code != "noRecordsMatch":
            raise RequestRefused(f"refuses the request: {code or 'an error'}: {message[:200]}")


def _to_record(record: OaiRecord) -> HarvestedRecord:
    metadata = {} if record.is_deleted else to_metadata(record.elements, record.language)
    return HarvestedRecord(record.identifier, record.datestamp, record.is_deleted, metadata)


def _continued(at: Cursor, response: OaiResponse) -> Cursor:
    empty_pages = 0 if response.records else at.empty_pages + 1
    if empty_pages > MAX_EMPTY_PAGES:
        message = f"sent {empty_pages} pages in a row without records but with a resumption token"
        raise BadPage(message, _cursor_before(at))
    try:
        trail = at.trail.add(response.token)
    except EndlessList as error:
        raise BadPage(f"has a list of records that {error}", _cursor_before(at)) from None
    changes = {"token": response.token, "trail": trail, "empty_pages": empty_pages}
    return at.model_copy(update=changes)


def _finished(at: Cursor) -> dict[str, Any]:
    """Return the cursor after a complete harvest."""
    done = Cursor(done_until=at.ends, granularity=at.granularity, deletions=at.deletions)
    return done.model_dump(mode="json")


def _cursor_before(at: Cursor) -> dict[str, Any]:
    """Return the cursor before the beginning of this harvest."""
    return Cursor(done_until=at.done_until).model_dump(mode="json")


def _restarted(at: Cursor, error: _TokenRefused) -> Page:
    """Return an empty page with the cursor of the first page of this harvest.

    The list has no order, so the harvest cannot continue at the last record that was read.
    """
    if not at.token:
        raise BadPage(f"refuses a resumption token that was not sent: {error}"[:300])
    if at.restarts >= MAX_RESTARTS:
        message = f"accepts no resumption token, after {at.restarts} restarts of the list: {error}"
        raise BadPage(message[:300], _cursor_before(at))
    cursor = at.model_copy(
        update={"token": "", "trail": TokenTrail(), "restarts": at.restarts + 1, "empty_pages": 0}
    )
    return Page(cursor.model_dump(mode="json"))
