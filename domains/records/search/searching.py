"""Ask the indexes, fuse what they return, and give the records of one page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import QuerySet

from tailrace.db.connections import timed_out
from tailrace.db.limits import time_limits
from tailrace.domains.records.indexing.backends import IndexBackend, IndexUnavailable, backends
from tailrace.domains.records.models import Record
from tailrace.domains.records.search.snippets import Snippet, snippets
from tailrace.domains.records.visibility import visible_records
from tailrace.events.validation import clean

MOST_CHARACTERS = 500
"""Of a search text."""
MOST_RESULTS = 200
"""That can be paged through; each index returns as many."""
SECONDS, LOCK_SECONDS = 5.0, 1.0
"""That an index may take."""
COST = 5.0
"""Of a search, in requests of the user's budget."""
_RANK_OFFSET = 60
"""The larger, the more it counts that several indexes have a record, and the less the first places
(Cormack, Clarke and Büttcher: Reciprocal Rank Fusion, 2009)."""

_NO_DASHES = re.compile(r'-+(?![\w"])')
"""Dashes that exclude nothing; PostgreSQL fails at hundreds of them in a row."""

log = structlog.get_logger(__name__)


class InvalidSearch(ValueError):
    """The search cannot be made as it is; the message says why."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class SearchUnavailable(Exception):
    """No index could answer in time; the same search may succeed later."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A record, and why it was found."""

    record: Record
    places: dict[str, int]
    """Its place in each index that has it, from 1."""
    snippet: Snippet


@dataclass(frozen=True, slots=True)
class Results:
    """One page of a search."""

    hits: list[Hit]
    has_more: bool
    left_out: list[str]
    """The indexes that could not answer."""


def search(user: User, text: str, index: str = "", offset: int = 0, size: int = 20) -> Results:
    """Return the records that the user may see and that match, best first, from `offset` on.

    Without an `index` all are asked. Raises InvalidSearch or SearchUnavailable.
    """
    text = _checked(text)
    chosen = _chosen(index)
    records = visible_records(user).filter(is_deleted=False)
    rankings = {name: _ranking(backend, text, records) for name, backend in chosen.items()}
    left_out = [name for name, ids in rankings.items() if ids is None]
    if len(left_out) == len(rankings):
        raise SearchUnavailable("the search took too long: try again later, or with other words")
    places = _places({name: ids for name, ids in rankings.items() if ids is not None})
    best = sorted(places, key=lambda id: (-_score(places[id]), -id))[:MOST_RESULTS]
    page = best[offset : offset + size]
    rows = records.in_bulk(page)
    parts = snippets(page, text)
    hits = [Hit(rows[id], places[id], parts[id]) for id in page if id in rows and id in parts]
    return Results(hits, len(best) > offset + size, left_out)


def _checked(text: str) -> str:
    text = " ".join(_NO_DASHES.sub(" ", clean(text)[0]).split())
    if not text:
        raise InvalidSearch("q", "type what to search for")
    if len(text) > MOST_CHARACTERS:
        raise InvalidSearch(
            "q", f"the search has {len(text):,} characters; at most {MOST_CHARACTERS} are allowed"
        )
    return text


def _chosen(index: str) -> Mapping[str, IndexBackend]:
    if not index:
        return backends()
    if index not in backends():
        raise InvalidSearch(
            "index", f"no index is called {index!r}; there are {', '.join(backends())}"
        )
    return {index: backends()[index]}


def _ranking(backend: IndexBackend, text: str, records: QuerySet[Record]) -> list[int] | None:
    """Return the ids of the records that match, best first; None if the index cannot answer."""
    try:
        with time_limits(SECONDS, LOCK_SECONDS):
            return backend.search(text, records, MOST_RESULTS)
    except IndexUnavailable as error:
        log.warning("records.index_unavailable", index=backend.name, error=str(error))
    except OperationalError as error:
        if not timed_out(error):
            raise
        log.warning("records.search_too_slow", index=backend.name, seconds=SECONDS)
    return None


def _places(rankings: Mapping[str, Sequence[int]]) -> dict[int, dict[str, int]]:
    places: dict[int, dict[str, int]] = {}
    for name, ids in rankings.items():
        for place, id in enumerate(ids, 1):
            places.setdefault(id, {})[name] = place
    return places


def _score(places: Mapping[str, int]) -> float:
    return sum(1 / (_RANK_OFFSET + place) for place in places.values())
