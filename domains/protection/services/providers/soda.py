"""Deeds and mortgages of New York City: the datasets of ACRIS, read by SODA, an API for open data.

There are three datasets: Legals has the lots and addresses of the documents, Master their types,
dates and amounts, Parties their people. https://dev.socrata.com/docs/queries/
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings

from tailrace.domains.protection.services.properties.documents import Document, Reading
from tailrace.domains.protection.services.properties.names import as_written
from tailrace.domains.protection.services.properties.places import (
    Place,
    full_street,
    street_spellings,
)
from tailrace.domains.protection.services.providers.ask import Answer, Provider, ask
from tailrace.domains.protection.services.providers.deeds import DeedSource, FeedPage, Position
from tailrace.jobs.destinations.request_errors import RequestRefused, Unavailable

PAGE_ROWS = 1000
MOST_ROWS = 50_000
"""Maximum number of rows of a query, in all pages."""
MOST_IDS = 100
"""Maximum number of documents in a query: their ids are part of the URL."""
MASTER, LEGALS, PARTIES = "bnx9-e6tj", "8h5j-fqxa", "636b-3b5g"
FEEDS = {
    "master": (MASTER, "modified_date"),
    "legals": (LEGALS, "good_through_date"),
    "parties": (PARTIES, "good_through_date"),
}
"""Each dataset that is a change feed, and its column with the time of a change."""
VALIDATORS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}

Row = Mapping[str, Any]


class Acris(DeedSource):
    """The Automated City Register Information System of New York City."""

    name = "acris"
    feeds = tuple(FEEDS)

    def is_set(self) -> bool:
        return bool(settings.PROTECTION_SODA_URL)

    async def read(self, place: Place, most: int) -> Reading:
        rows = _rows(
            LEGALS,
            select="document_id,good_through_date",
            where=_where_place(place),
            order="good_through_date DESC,document_id DESC,:id",
        )
        ids: dict[str, None] = {}
        watermark, complete = "", True
        async for row in rows:
            watermark = max(watermark, _text(row, "good_through_date"))
            if id := _text(row, "document_id"):
                ids[id] = None
            if len(ids) > most:
                ids.popitem()
                complete = False
                break
        documents = {document.id: document for document in await _documents(list(ids))}
        return Reading(documents, complete, watermark)

    async def changes(self, feed: str, position: Position) -> FeedPage:
        dataset, column = FEEDS[feed]
        if not position.get("time"):
            newest = await _ask(
                dataset,
                where=f"{column} IS NOT NULL",
                select=f"document_id,{column}",
                order=f"{column} DESC,document_id DESC",
                limit=1,
            )
            return FeedPage(_position(newest, newest.json(), column, {}))
        headers = {
            header: str(position[name]) for name, header in VALIDATORS.items() if position.get(name)
        }
        answer = await _ask(
            dataset,
            headers,
            select=f"document_id,{column}",
            where=_where_after(column, str(position["time"]), str(position["document"])),
            order=f"{column},document_id",
            limit=PAGE_ROWS,
        )
        if answer.status == 304:
            return FeedPage(position)
        rows = answer.json()
        ids = list(dict.fromkeys(filter(None, (_text(row, "document_id") for row in rows))))
        place_keys = frozenset([key async for key in _place_keys_of(ids)])
        return FeedPage(
            _position(answer, rows, column, position), place_keys, more=len(rows) == PAGE_ROWS
        )


def quoted(text: str) -> str:
    """Return a text as a literal for a query, with quotes doubled."""
    return "'" + text.replace("'", "''") + "'"


def _where_place(place: Place) -> str:
    if place.block is not None and place.lot is not None:
        return f"borough={place.borough:d} AND block={place.block:d} AND lot={place.lot:d}"
    parts = [
        f"borough={place.borough:d}",
        f"street_number={quoted(place.street_number)}",
        f"street_name IN ({','.join(map(quoted, street_spellings(place.street_name)))})",
    ]
    if place.unit:
        parts.append(f"unit={quoted(place.unit)}")
    return " AND ".join(parts)


def _where_after(column: str, time: str, document: str) -> str:
    """Return the condition for rows after this time and document, in the order of both."""
    at = quoted(time)
    return f"{column}>{at} OR ({column}={at} AND document_id>{quoted(document)})"


def _position(answer: Answer, rows: Sequence[Row], column: str, before: Position) -> Position:
    """Return the position of the next page, which begins after the last row.

    If there are no rows, the position keeps the answer's validators: the same query is sent again,
    and 304 means that nothing has changed.
    """
    if not rows:
        return {**before, **{name: answer.headers.get(name, "") for name in VALIDATORS}}
    last = rows[-1]
    return {"time": _text(last, column), "document": _text(last, "document_id")}


async def _documents(ids: Sequence[str]) -> list[Document]:
    """Return the documents that are in Master, with their parties."""
    documents = []
    for batch in _batches(ids):
        where = _where_documents(batch)
        parties = await _parties(where)
        rows = _rows(
            MASTER,
            select="document_id,doc_type,document_date,document_amt,recorded_datetime",
            where=where,
            order="document_id,:id",
        )
        documents += [_document(row, parties) async for row in rows if _text(row, "doc_type")]
    return documents


async def _parties(where: str) -> dict[tuple[str, str], list[str]]:
    """Return the names by document id and type of party."""
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    select, order = "document_id,party_type,name", "document_id,:id"
    async for row in _rows(PARTIES, select=select, where=where, order=order):
        names[_text(row, "document_id"), _text(row, "party_type")].append(_text(row, "name"))
    return names


def _document(row: Row, parties: Mapping[tuple[str, str], list[str]]) -> Document:
    id = _text(row, "document_id")
    return Document(
        id,
        type=_text(row, "doc_type"),
        recorded=_text(row, "recorded_datetime"),
        dated=_text(row, "document_date"),
        amount=_text(row, "document_amt"),
        grantors=as_written(parties.get((id, "1"), [])),
        grantees=as_written(parties.get((id, "2"), [])),
    )


async def _place_keys_of(ids: Sequence[str]) -> AsyncIterator[str]:
    """Yield the keys of the lots and addresses in these documents."""
    for batch in _batches(ids):
        rows = _rows(
            LEGALS,
            select="borough,block,lot,street_number,street_name",
            where=_where_documents(batch),
            order="document_id,:id",
        )
        async for row in rows:
            borough = _number(row, "borough")
            yield Place(borough, _number(row, "block"), _number(row, "lot")).place_key
            number, street = _text(row, "street_number"), full_street(_text(row, "street_name"))
            if number and street:
                yield Place(borough, street_number=number, street_name=street).place_key


def _where_documents(ids: Iterable[str]) -> str:
    return f"document_id IN ({','.join(map(quoted, ids))})"


def _batches(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[start : start + MOST_IDS] for start in range(0, len(ids), MOST_IDS))


async def _rows(dataset: str, *, select: str, where: str, order: str) -> AsyncIterator[Row]:
    """Yield the rows of a query, page by page, up to MOST_ROWS. `order` has to be unique."""
    for offset in range(0, MOST_ROWS, PAGE_ROWS):
        answer = await _ask(
            dataset, select=select, where=where, order=order, limit=PAGE_ROWS, offset=offset
        )
        rows = answer.json()
        for row in rows:
            yield row
        if len(rows) < PAGE_ROWS:
            return


async def _ask(
    dataset: str,
    headers: Mapping[str, str] | None = None,
    *,
    select: str,
    where: str,
    order: str,
    limit: int,
    offset: int = 0,
) -> Answer:
    params = {
        "$where": where, "$select": select, "$order": order, "$limit": limit, "$offset": offset
    }  # fmt: skip
    path = f"/resource/{dataset}.json?{urlencode(params, safe='$', quote_via=quote)}"
    provider = _provider()
    answer = await ask(provider, path, headers=headers, is_wrong=_error_in)
    if answer.status == 202:
        text = answer.headers.get("retry-after", "")
        after = float(text) if text.isdecimal() else None
        reason = "answered 202: the rows are not ready yet"
        raise Unavailable(reason, after, destination=provider.name)
    if answer.status == 404:
        reason = f"has no dataset {dataset}: check PROTECTION_SODA_URL"
        raise RequestRefused(reason, destination=provider.name)
    return answer


def _provider() -> Provider:
    token = settings.PROTECTION_SODA_TOKEN
    return Provider(
        "acris",
        settings.PROTECTION_SODA_URL.rstrip("/"),
        settings.PROTECTION_SODA_PER_MINUTE / 60,
        {"Accept": "application/json", **({"X-App-Token": token} if token else {})},
    )


def _error_in(answer: Answer) -> str:
    """Return why an answer of 200 is wrong, or an empty string."""
    rows = answer.json()
    if isinstance(rows, dict) and "message" in rows:
        return f"answered 200 with an error: {str(rows['message'])[:200]}"
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return "answered with something other than a list of rows"
    return ""


def _text(row: Row, column: str) -> str:
    """Return a column as text on one line, without characters that cannot be stored."""
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).replace("\x00", " ").split())[:300]


def _number(row: Row, column: str) -> int:
    """Return the number in a column, which comes as text, or -1 if it is not a number."""
    text = _text(row, column)
    return int(text) if text.isdecimal() and len(text) < 10 else -1
