"""An OAI-PMH 2.0 repository that follows the specification, with the verbs of a harvest.

https://www.openarchives.org/OAI/openarchivesprotocol.html
"""

import gzip
import json
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from tailrace.net.sample_server import Request, Response
from tailrace.samples.records import oai_xml
from tailrace.samples.records.oai_xml import OaiError, StoredRecord

ARGUMENTS = {
    "Identify": (),
    "ListRecords": ("metadataPrefix", "from", "until", "set"),
}
FORMATS = {"YYYY-MM-DD": "%Y-%m-%d", "YYYY-MM-DDThh:mm:ssZ": "%Y-%m-%dT%H:%M:%SZ"}
Granularity = Literal["YYYY-MM-DD", "YYYY-MM-DDThh:mm:ssZ"]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Repository:
    """A repository with options for its responses, a log of requests, and injected faults."""

    url: str = ""
    name: str = "A repository"
    granularity: Granularity = "YYYY-MM-DDThh:mm:ssZ"
    deleted_record: Literal["no", "transient", "persistent"] = "persistent"
    page_size: int = 10
    token_lifetime: timedelta | None = None
    """None: resumption tokens never expire."""
    clock: Callable[[], datetime] = _now
    requests: list[dict[str, str]] = field(default_factory=list)
    """The arguments of each request."""
    before: Callable[[Request], Response | None] = lambda request: None
    """Called before each request is handled. If it returns a response, that is sent instead."""
    gzips: bool = False
    _records: dict[str, StoredRecord] = field(default_factory=dict)
    _epoch: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # --- records ---

    def add(
        self,
        identifier: str,
        *,
        changed_at: datetime | None = None,
        sets: Sequence[str] = (),
        **elements: str | Sequence[str],
    ) -> None:
        """Add or replace a record with these Dublin Core elements."""
        values = {
            name: [value] if isinstance(value, str) else list(value)
            for name, value in elements.items()
        }
        with self._lock:
            self._records[identifier] = StoredRecord(
                identifier, changed_at or self.clock(), tuple(sets), values
            )

    def delete(self, identifier: str, changed_at: datetime | None = None) -> None:
        """Delete a record. It is listed as deleted, unless `deleted_record` is "no"."""
        with self._lock:
            record = self._records.pop(identifier)
            if self.deleted_record != "no":
                self._records[identifier] = StoredRecord(
                    identifier, changed_at or self.clock(), record.sets, None
                )

    def forget_tokens(self) -> None:
        """Invalidate all resumption tokens."""
        self._epoch += 1

    # --- responses ---

    def respond(self, request: Request) -> Response:
        pairs = parse_qsl(urlsplit(request.path).query, keep_blank_values=True)
        with self._lock:
            self.requests.append(dict(pairs))
        if (fault := self.before(request)) is not None:
            return fault
        arguments, moment = dict(pairs), self.clock()
        try:
            if len(arguments) < len(pairs):
                raise OaiError("badArgument", "an argument is repeated")
            content = self._content(arguments, moment)
        except OaiError as error:
            content = error.xml()
            arguments = {} if error.code in ("badVerb", "badArgument") else arguments
        body = oai_xml.document(self.url, arguments, moment, content)
        headers = {"Content-Type": "text/xml; charset=utf-8"}
        if self.gzips and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(200, gzip.compress(body), headers | {"Content-Encoding": "gzip"})
        return Response(200, body, headers)

    def _content(self, arguments: Mapping[str, str], moment: datetime) -> str:
        verb = arguments.get("verb", "")
        if verb not in ARGUMENTS:
            raise OaiError("badVerb", f"{verb!r} is not a verb of OAI-PMH")
        given = {name: value for name, value in arguments.items() if name != "verb"}
        if verb == "ListRecords" and "resumptionToken" in given:
            if len(given) > 1:
                raise OaiError("badArgument", "resumptionToken is an exclusive argument")
            return self._list(*self._read_token(given["resumptionToken"], moment), moment)
        if unknown := given.keys() - set(ARGUMENTS[verb]):
            raise OaiError("badArgument", f"{verb} takes no {sorted(unknown)[0]}")
        if verb == "Identify":
            return self._identify()
        self._check_list(given)
        return self._list(given, 0, moment)

    def _identify(self) -> str:
        times = (record.changed_at for record in self._sorted_records())
        earliest = min(times, default=self.clock())
        return oai_xml.identify(
            self.name, self.url, self._text(earliest), self.deleted_record, self.granularity
        )

    def _list(self, given: Mapping[str, str], offset: int, moment: datetime) -> str:
        records = self._matching(given)
        if not records:
            raise OaiError("noRecordsMatch", "the combination of arguments gives an empty list")
        page = records[offset : offset + self.page_size]
        xml = [record.xml(self._text(record.changed_at)) for record in page]
        after, total = offset + len(page), len(records)
        if offset or after < total:
            token = self._token(given, after, moment) if after < total else ""
            expires = moment + self.token_lifetime if token and self.token_lifetime else None
            xml.append(oai_xml.resumption_token(token, offset, total, expires))
        return f"<ListRecords>{''.join(xml)}</ListRecords>"

    def _matching(self, given: Mapping[str, str]) -> list[StoredRecord]:
        begins, ends = given.get("from", ""), given.get("until", "9999")
        if self.granularity != "YYYY-MM-DD" and len(ends) == 10:
            ends += "T23:59:59Z"
        wanted = given.get("set", "")
        return [
            record
            for record in self._sorted_records()
            if begins <= self._text(record.changed_at) <= ends
            and (not wanted or any(f"{name}:".startswith(f"{wanted}:") for name in record.sets))
        ]

    def _sorted_records(self) -> list[StoredRecord]:
        with self._lock:
            return sorted(self._records.values(), key=lambda record: record.identifier)

    # --- arguments ---

    def _check_list(self, given: Mapping[str, str]) -> None:
        prefix = given.get("metadataPrefix")
        if not prefix:
            raise OaiError("badArgument", "metadataPrefix is required")
        if prefix != "oai_dc":
            raise OaiError("cannotDisseminateFormat", f"there is no format {prefix!r} here")
        bounds = [given[name] for name in ("from", "until") if name in given]
        lengths = {len(bound) for bound in bounds}
        if not all(map(self._is_datestamp, bounds)) or len(lengths) > 1:
            raise OaiError("badArgument", f"from and until are not of {self.granularity}")
        if len(bounds) == 2 and bounds[0] > bounds[1]:
            raise OaiError("badArgument", "from is after until")
        if "set" in given and not any(record.sets for record in self._sorted_records()):
            raise OaiError("noSetHierarchy", "this repository has no sets")

    def _is_datestamp(self, text: str) -> bool:
        by_day = FORMATS["YYYY-MM-DD"]
        for form in (by_day,) if self.granularity == "YYYY-MM-DD" else FORMATS.values():
            try:
                datetime.strptime(text, form)
                return True
            except ValueError:
                continue
        return False

    # --- resumption tokens ---

    def _token(self, given: Mapping[str, str], offset: int, moment: datetime) -> str:
        parts = [dict(given), offset, moment.timestamp(), self._epoch]
        return urlsafe_b64encode(json.dumps(parts).encode()).decode()

    def _read_token(self, token: str, moment: datetime) -> tuple[dict[str, str], int]:
        refused = OaiError("badResumptionToken", "the token is unknown or has expired")
        try:
            parts: Any = json.loads(urlsafe_b64decode(token))
            given, offset, issued, epoch = parts
        except ValueError:
            raise refused from None
        expires = issued + self.token_lifetime.total_seconds() if self.token_lifetime else None
        if epoch != self._epoch:
            raise refused
        if expires is not None and moment.timestamp() > expires:
            raise refused
        return given, offset

    def _text(self, moment: datetime) -> str:
        return moment.astimezone(UTC).strftime(FORMATS[self.granularity])
