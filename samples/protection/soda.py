"""A server of open data with the SODA protocol and the three datasets of ACRIS.

It evaluates $where, $select, $order, $limit and $offset, returns numbers as texts, supports ETag
and Last-Modified, checks the app token, and can have faults.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tailrace.net.sample_server import Request, Response
from tailrace.samples.protection.soda_query import QueryError, Where, malformed

LEGALS, MASTER, PARTIES = "8h5j-fqxa", "bnx9-e6tj", "636b-3b5g"
COLUMNS = {
    LEGALS: (
        "document_id", "borough", "block", "lot", "street_number", "street_name", "unit",
        "good_through_date",
    ),
    MASTER: (
        "document_id", "crfn", "doc_type", "document_date", "document_amt", "recorded_datetime",
        "modified_date",
    ),
    PARTIES: ("document_id", "party_type", "name", "address", "good_through_date"),
}  # fmt: skip
NUMBERS = frozenset({"borough", "block", "lot", "document_amt", "party_type"})
PARAMETERS = {"$where", "$select", "$order", "$limit", "$offset"}
MOST_ROWS = 50_000


@dataclass
class SodaServer:
    """The datasets, the received requests, and the faults."""

    url: str = ""
    token: str = ""
    """The accepted app token; empty: any token."""
    rows: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {LEGALS: [], MASTER: [], PARTIES: []}
    )
    requests: list[Request] = field(default_factory=list)
    changed_at: dict[str, datetime] = field(default_factory=dict)
    before: Callable[[Request], Response | None] = lambda request: None
    """Called before each answer. If it returns a response, this is the answer."""

    def deed(
        self,
        id: str,
        buyers: list[str],
        sellers: list[str] | None = None,
        *,
        type: str = "DEED",
        amount: float = 500_000,
        recorded: str = "2020-01-02",
        block: int = 10,
        lot: int = 20,
        number: str = "12",
        street: str = "MAIN STREET",
        unit: str = "",
        borough: int = 3,
    ) -> None:
        """Record a document about one lot in all three datasets."""
        day = f"{recorded}T00:00:00.000"
        place = {"street_number": number, "street_name": street, "unit": unit or None}
        numbers = {"borough": borough, "block": block, "lot": lot}
        self.rows[LEGALS].append({"document_id": id, **numbers, **place, "good_through_date": day})
        self.rows[MASTER].append(
            {
                "document_id": id, "crfn": id[-8:], "doc_type": type, "document_date": day,
                "document_amt": amount, "recorded_datetime": day, "modified_date": day,
            }
        )  # fmt: skip
        people = [(1, name) for name in sellers or []] + [(2, name) for name in buyers]
        self.rows[PARTIES] += [
            {
                "document_id": id,
                "party_type": kind,
                "name": name,
                "address": "1 WALL STREET",
                "good_through_date": day,
            }
            for kind, name in people
        ]
        self.publish()

    def publish(self) -> None:
        """Record that all datasets have changed."""
        for dataset, last in ((each, self.changed_at.get(each)) for each in self.rows):
            first = datetime(2026, 10, 1, tzinfo=UTC)
            self.changed_at[dataset] = first if last is None else last + timedelta(seconds=1)

    def rename_parties(
        self, document_id: str, party_type: int, *names: str, published: str = "2020-01-02"
    ) -> None:
        """Replace the parties of a document."""
        rows = self.rows[PARTIES]
        kept = [
            row
            for row in rows
            if (row["document_id"], row["party_type"]) != (document_id, party_type)
        ]
        new = {
            "document_id": document_id,
            "party_type": party_type,
            "address": "",
            "good_through_date": f"{published}T00:00:00.000",
        }
        self.rows[PARTIES] = kept + [{**new, "name": name} for name in names]
        self.publish()

    def datasets(self) -> list[str]:
        """Return the dataset of each request, in order."""
        return [request.path.split("/")[2].split(".")[0] for request in self.requests]

    def respond(self, request: Request) -> Response:
        self.requests.append(request)
        if (answer := self.before(request)) is not None:
            return answer
        address = urlsplit(request.path)
        dataset = address.path.removeprefix("/resource/").removesuffix(".json")
        if address.path != f"/resource/{dataset}.json" or dataset not in self.rows:
            return error(404, "dataset.missing", "Not found")
        if self.token and request.headers.get("x-app-token", self.token) != self.token:
            return error(403, "permission_denied", "Invalid app_token specified")
        headers = self._validators(dataset, address.query)
        if self._unchanged(dataset, request, headers["ETag"]):
            return Response(304, b"", headers)
        try:
            rows = self._select(dataset, parse_qsl(address.query, keep_blank_values=True))
        except QueryError as wrong:
            return error(400, wrong.code, wrong.message)
        return Response(
            200, json.dumps(rows).encode(), {**headers, "Content-Type": "application/json"}
        )

    def _validators(self, dataset: str, query: str) -> dict[str, str]:
        if dataset not in self.changed_at:
            self.publish()
        at = self.changed_at[dataset]
        tag = hashlib.sha256(f"{at}{query}".encode()).hexdigest()[:20]
        return {"ETag": f'"{tag}"', "Last-Modified": format_datetime(at, usegmt=True)}

    def _unchanged(self, dataset: str, request: Request, tag: str) -> bool:
        if "if-none-match" in request.headers:
            return request.headers["if-none-match"] == tag
        since = request.headers.get("if-modified-since")
        return since is not None and parsedate_to_datetime(since) >= self.changed_at[dataset]

    def _select(self, dataset: str, params: list[tuple[str, str]]) -> list[dict[str, str]]:
        given = dict(params)
        if unknown := given.keys() - PARAMETERS:
            raise malformed(f"Unrecognized arguments {sorted(unknown)}")
        names = frozenset(COLUMNS[dataset]) | {":id"}
        limit, offset = (_count(given, name, default) for name, default in _DEFAULTS)
        if limit > MOST_ROWS:
            raise malformed(f"$limit {limit} is more than {MOST_ROWS}")
        rows = [{":id": n, **row} for n, row in enumerate(self.rows[dataset])]
        if given.get("$where"):
            where = Where(given["$where"], names, NUMBERS)
            rows = [row for row in rows if where(row)]
        for part in reversed(given.get("$order", ":id").split(",")):
            name, _, direction = part.strip().partition(" ")
            if name not in names or direction not in ("", "ASC", "DESC"):
                raise QueryError("query.soql.no-such-column", f"No such column: {part}")
            rows.sort(key=lambda row: _sortable(row.get(name)), reverse=direction == "DESC")
        selected = given.get("$select", ",".join(COLUMNS[dataset])).split(",")
        if missing := [name for name in selected if name not in names]:
            raise QueryError("query.soql.no-such-column", f"No such column: {missing[0]}")
        return [
            {name: str(row[name]) for name in selected if row.get(name) is not None}
            for row in rows[offset : offset + limit]
        ]


_DEFAULTS = (("$limit", 1000), ("$offset", 0))


def _count(given: dict[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isdecimal():
        raise malformed(f"{name} {text!r} is not a number")
    return int(text)


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if value is not None else 0)


def error(status: int, code: str, message: str, **headers: str) -> Response:
    body = {"code": code, "error": True, "message": message}
    return Response(
        status, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    )
