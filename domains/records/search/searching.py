"""Search in the indexes, combine their rankings, and return one page of records."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import QuerySet

from tailrace.db.connections import timed_out
from tailrace.db.limits import time_limits
from tailrace.domains.records.models import Record
from tailrace.domains.records.models.visibility import visible_records
from tailrace.domains.records.search.facets import Filter, Value, faceted
from tailrace.domains.records.search.indexing.backends import (
    IndexBackend,
    IndexUnavailable,
    backends,
)
from tailrace.domains.records.search.snippets import Snippet, snippets
from tailrace.events.publishing.validation import clean

MOST_CHARACTERS = 500
"""Maximum length of a search text."""
MOST_RESULTS = 200
"""Maximum number of results of a search, and of each index."""
SECONDS, LOCK_SECONDS = 5.0, 1.0
"""Time limits for the statements and the lock waits of an index."""
COST = 5.0
"""The number of requests as which a search counts in the user's budget."""
_RANK_OFFSET = 60
"""The constant of reciprocal rank fusion. With a larger value, it matters more that several indexes
found a record, and less that it has a top rank (Cormack, Clarke and Büttcher 2009)."""

_NO_DASHES = re.compile(r'-+(?![\w"])')
"""Dashes that exclude no word. PostgreSQL fails if hundreds of them are in a row."""

log = structlog.get_logger(__name__)


class InvalidSearch(ValueError):
    """A parameter of the search is invalid; the message gives the reason."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class SearchUnavailable(Exception):
    """No index responded in time. The same search may succeed later."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that matches the search."""

    record: Record
    places: dict[str, int]
    """The rank of the record in each index that found it, from 1."""
    snippet: Snippet

    @property
    def found_by(self) -> list[str]:
        """The titles of the indexes that found the record."""
        return [backends()[name].title for name in self.places]


@dataclass(frozen=True, slots=True)
class Results:
    hits: list[Hit]
    has_more: bool
    left_out: list[str]
    """The names of the indexes that did not respond."""
    methods: dict[str, str]
    """How the other indexes searched, by name, in sentences for users."""
    facets: dict[str, list[Value]] = field(default_factory=dict)
    """Of the best MOST_RESULTS matches, without the filter; empty if none were requested."""


def search(
    user: User,
    text: str,
    index: str = "",
    offset: int = 0,
    size: int = 20,
    only: Filter | None = None,
) -> Results:
    """Return matching records that the user may see, the best match first, from `offset` on.

    If `index` is empty, all indexes are searched. With a filter `only`, which may be empty, the
    results have facets. Raises InvalidSearch or SearchUnavailable.
    """
    text = _checked_text(text)
    chosen = _chosen_indexes(index)
    records = visible_records(user).filter(is_deleted=False)
    rankings = {name: _ranking(backend, text, records) for name, backend in chosen.items()}
    left_out = [name for name, ids in rankings.items() if ids is None]
    if len(left_out) == len(rankings):
        raise SearchUnavailable("the search took too long: try again later, or with other words")
    places = _places({name: ids for name, ids in rankings.items() if ids is not None})
    best = sorted(places, key=lambda id: (-_score(places[id]), -id))[:MOST_RESULTS]
    facets: dict[str, list[Value]] = {}
    if only is not None:
        filtered = faceted(records, best, only)
        best, facets = filtered.ids, filtered.facets
    page = best[offset : offset + size]
    rows = records.in_bulk(page)
    parts = snippets(page, text)
    hits = [Hit(rows[id], places[id], parts[id]) for id in page if id in rows and id in parts]
    responded = {name: each for name, each in chosen.items() if name not in left_out}
    methods = {name: text for name, each in responded.items() if (text := each.method())}
    return Results(hits, len(best) > offset + size, left_out, methods, facets)


def _checked_text(text: str) -> str:
    text = " ".join(_NO_DASHES.sub(" ", clean(text)[0]).split())
    if not text:
        raise InvalidSearch("q", "the search text is empty")
    if len(text) > MOST_CHARACTERS:
        raise InvalidSearch(
            "q",
            f"the search text has {len(text):,} characters; at most {MOST_CHARACTERS} are allowed",
        )
    return text


def _chosen_indexes(index: str) -> Mapping[str, IndexBackend]:
    if not index:
        return backends()
    if index not in backends():
        raise InvalidSearch(
            "index", f"no index is called {index!r}; the indexes are {', '.join(backends())}"
        )
    return {index: backends()[index]}


def _ranking(backend: IndexBackend, text: str, records: QuerySet[Record]) -> list[int] | None:
    """Return the ids of matching records, the best match first; None if the index is unavailable
    or too slow."""
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
