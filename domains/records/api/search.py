"""Search over published records in the API."""

from typing import Annotated

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field

from tailrace.db.pagination import InvalidCursor, decode, encode
from tailrace.domains.records.search import searching
from tailrace.domains.records.search.searching import InvalidSearch, SearchUnavailable
from tailrace.domains.records.search.snippets import PartOut
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Cursor
from tailrace.web.api.problems import busy, wrong_parameter
from tailrace.web.api.schemas import Out

SEARCH = Needs("records:read", cost=searching.COST)
router = Router()


class SearchQuery(BaseModel):
    """The search text, and which results to return."""

    q: Annotated[
        str,
        Field(
            max_length=searching.MOST_CHARACTERS,
            description='words, "a phrase", `or`, and `-word` to exclude a word (only `keyword`)',
        ),
    ]
    index: Annotated[
        str, Field(max_length=50, description="`keyword` or `vector`; empty: both combined")
    ] = ""
    limit: Annotated[int, Field(ge=1, le=50, description="maximum number of items")] = 20
    cursor: Cursor = None


class HitOut(Out):
    id: int
    url: str
    identifier: str
    title: list[PartOut]
    snippet: list[PartOut]
    """The most relevant parts of the description."""
    creators: list[str]
    language: str
    places: dict[str, int]
    """The rank of the record in each index that found it, from 1."""


class SearchOut(Out):
    items: list[HitOut]
    next: str | None = None
    """The cursor of the next page. A search has at most 200 results."""
    left_out: list[str]
    """The indexes that are unavailable or did not respond in time."""
    methods: dict[str, str]
    """How indexes searched: the embedding model of the search by meaning."""


@router.get("", auth=SEARCH, response=SearchOut, summary="Search records")
def search_records(request: HttpRequest, query: Query[SearchQuery]) -> SearchOut:
    """Searches open records and your own records, by words and by meaning, best match first."""
    user, offset = caller(request).user, _offset(query.cursor)
    try:
        results = searching.search(user, query.q, query.index, offset, query.limit)
    except InvalidSearch as error:
        raise wrong_parameter(error.parameter, str(error)) from None
    except SearchUnavailable as error:
        raise busy(error, seconds=10) from None
    return SearchOut(
        items=[_hit(hit) for hit in results.hits],
        next=encode(offset + query.limit) if results.has_more else None,
        left_out=results.left_out,
        methods=results.methods,
    )


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    [offset] = decode(cursor, int)
    if not 0 <= offset <= searching.MOST_RESULTS:
        raise InvalidCursor("cursor")
    return int(offset)


def _hit(hit: searching.Hit) -> HitOut:
    return HitOut.of(
        hit.record,
        url=f"{settings.PUBLIC_URL}/api/records/{hit.record.pk}",
        title=hit.snippet.title,
        snippet=hit.snippet.description,
        places=hit.places,
    )
