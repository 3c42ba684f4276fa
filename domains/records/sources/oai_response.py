"""Parse the response of an OAI-PMH repository, with limits on each part.

https://www.openarchives.org/OAI/openarchivesprotocol.html, sections 3.2 and 3.6.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from tailrace.domains.records.sources.formats import MAX_IDENTIFIER, BadPage
from tailrace.net.sanitize import printable

OAI = "{http://www.openarchives.org/OAI/2.0/}"
DUBLIN_CORE = ("{http://purl.org/dc/elements/1.1/}", "{http://purl.org/dc/terms/}")
MAX_TEXT = 20_000
"""Maximum number of characters of an element; the rest is ignored."""
MAX_ELEMENTS = 500
"""Maximum number of elements of a record; the rest is ignored."""
MAX_RECORDS = 5000
"""Maximum number of records of a page."""
MAX_TOKEN = 4000
CHUNK = 65_536
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_REFERENCE = re.compile(r"&#(x[0-9a-fA-F]{1,8}|[0-9]{1,8});")
_VALUES = frozenset({"granularity", "earliestDatestamp", "deletedRecord", "responseDate"})


@dataclass(slots=True)
class OaiRecord:
    """The header of a record, and its Dublin Core elements by name."""

    identifier: str = ""
    datestamp: datetime | None = None
    is_deleted: bool = False
    elements: dict[str, list[str]] = field(default_factory=dict)
    language: str = ""
    """The xml:lang of the first title with such an attribute."""


@dataclass(slots=True)
class OaiResponse:
    values: dict[str, str] = field(default_factory=dict)
    """responseDate; for Identify also granularity, earliestDatestamp and deletedRecord."""
    records: list[OaiRecord] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    """Error messages by code."""
    token: str = ""
    """The resumptionToken of the next page; empty: this is the last page."""
    total: int | None = None
    """completeListSize."""

    @property
    def response_date(self) -> datetime:
        """The time of the response by the repository's clock. Raises BadPage if it is missing."""
        text = self.values.get("responseDate", "")
        if (moment := parse_datestamp(text)) is None:
            raise BadPage(f"sent the responseDate {text[:50]!r}, which is not a time in UTC")
        return moment


def parse_datestamp(text: str) -> datetime | None:
    """Return the time of a datestamp such as 2026-01-31 or 2026-01-31T12:00:00Z, in UTC.

    Returns None if the datestamp is invalid.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        return None


def parse_response(body: bytes) -> OaiResponse:
    """Parse a response. Raises BadPage if it is not OAI-PMH.

    Removes control characters, which some repositories send although XML forbids them.
    """
    if not body.strip():
        raise BadPage("sent an empty response")
    if _HTML.match(body[:1000]):
        raise BadPage("sent a web page (HTML), not OAI-PMH: check its address")
    try:
        return _parse(body)
    except ParseError as error:
        problem = error
    if (cleaned := _clean(body)) != body:
        try:
            return _parse(cleaned)
        except ParseError as error:
            problem = error
    raise BadPage(_parse_problem(body, problem))


def _parse(body: bytes) -> OaiResponse:
    reader = _Reader()
    parser = DefusedXMLParser(target=reader, forbid_dtd=True)
    try:
        for start in range(0, len(body), CHUNK):
            parser.feed(body[start : start + CHUNK])
        parser.close()
    except DefusedXmlException as error:
        kind = type(error).__name__.removesuffix("Forbidden")
        raise BadPage(f"sent XML with a {kind}, which is not allowed") from None
    except (ValueError, LookupError) as error:  # an unknown encoding
        raise BadPage(f"sent XML that cannot be decoded ({error})"[:300]) from None
    return reader.response


def _parse_problem(body: bytes, error: ParseError) -> str:
    if body.rstrip().endswith(b"</OAI-PMH>"):
        return f"sent XML that is not well-formed ({error})"
    if body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<":
        return f"sent XML that ends too early, or is not well-formed ({error})"
    return f"sent a response that is not XML: {printable(body[:60].decode(errors='replace'))!r}"


def _clean(body: bytes) -> bytes:
    """Return the document without characters, and character references, that XML forbids."""
    text = printable(body.decode("utf-8", "replace"))
    return _REFERENCE.sub(_allowed_reference, text).encode()


def _allowed_reference(reference: re.Match[str]) -> str:
    digits = reference[1]
    number = int(digits[1:], 16) if digits.startswith("x") else int(digits)
    return reference[0] if number < 0x110000 and printable(chr(number)) else ""


class _Reader:
    """The target of the parser, which calls `start`, `data` and `end`."""

    def __init__(self) -> None:
        self.response = OaiResponse()
        self._path: list[str] = []
        self._record: OaiRecord | None = None
        self._in_header = False
        self._count = 0
        self._error = ""
        self._text: list[str] = []
        self._length = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._text, self._length = [], 0
        if not self._path and tag != f"{OAI}OAI-PMH":
            raise BadPage(f"sent XML that is not OAI-PMH, but <{tag[:100]}>: check its address")
        self._path.append(tag)
        if not tag.startswith(OAI):
            if tag.startswith(DUBLIN_CORE) and tag.endswith("}title") and self._record:
                language = attributes.get("{http://www.w3.org/XML/1998/namespace}lang", "")
                self._record.language = self._record.language or language[:35]
            return
        match tag.removeprefix(OAI):
            case "record":
                if len(self.response.records) >= MAX_RECORDS:
                    raise BadPage(f"sent a page of over {MAX_RECORDS:,} records")
                self._record, self._count = OaiRecord(), 0
            case "header" if self._record and len(self._path) == 4:
                self._in_header = True
                self._record.is_deleted = attributes.get("status") == "deleted"
            case "error":
                self._error = attributes.get("code", "")[:50]
            case "resumptionToken":
                size = attributes.get("completeListSize", "")
                self.response.total = int(size) if size.isdecimal() and len(size) < 15 else None

    def data(self, text: str) -> None:
        if self._length < MAX_TEXT:
            self._text.append(text[: MAX_TEXT - self._length])
            self._length += len(text)

    def end(self, tag: str) -> None:
        text = "".join(self._text).strip()
        self._text, self._length = [], 0
        self._path.pop()
        if self._record is not None and not tag.startswith(OAI):
            self._add_element(self._record, tag, text)
        elif tag.startswith(OAI):
            self._end_of_protocol(tag.removeprefix(OAI), text)

    def close(self) -> None:
        """Do nothing. The parser calls this method at the end of the document."""

    def _add_element(self, record: OaiRecord, tag: str, text: str) -> None:
        if text and tag.startswith(DUBLIN_CORE) and self._count < MAX_ELEMENTS:
            self._count += 1
            record.elements.setdefault(tag.rpartition("}")[2], []).append(text)

    def _end_of_protocol(self, name: str, text: str) -> None:
        if name == "record" and self._record is not None:
            self._end_of_record(self._record)
        elif name == "header":
            self._in_header = False
        elif self._in_header and self._record is not None:
            if name == "identifier":
                self._record.identifier = text
            elif name == "datestamp":
                self._record.datestamp = parse_datestamp(text)
        elif name in _VALUES:
            self.response.values[name] = text
        elif name == "error":
            self.response.errors[self._error] = text[:300]
        elif name == "resumptionToken":
            self.response.token = text
            if len(text) > MAX_TOKEN:
                raise BadPage(f"sent a resumptionToken of {len(text):,} characters")

    def _end_of_record(self, record: OaiRecord) -> None:
        self._record = None
        if not record.identifier:
            raise BadPage("sent a record without an identifier in its header")
        if len(record.identifier) > MAX_IDENTIFIER:
            raise BadPage(f"sent an identifier of {len(record.identifier):,} characters")
        if record.is_deleted:
            record.elements = {}
        self.response.records.append(record)
