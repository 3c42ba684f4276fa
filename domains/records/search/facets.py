"""Facets of search results: how many of the best matches have each source, language and year."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import QuerySet

from tailrace.domains.records.models import Record

DEPOSITED = "(deposited)"
"""The source of records that no source brought. No source has such a name."""
UNKNOWN = "(unknown)"
"""The language of records without one."""
TITLES = {"source": "Source", "language": "Language", "year": "Year"}
MOST_VALUES = 12
"""Maximum number of values of a facet, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The values that records must have; an empty text allows any."""

    source: str = ""
    language: str = ""
    year: str = ""

    def allows(self, values: Mapping[str, str]) -> bool:
        return all(getattr(self, name) in ("", value) for name, value in values.items())


@dataclass(frozen=True, slots=True)
class Value:
    value: str
    label: str
    count: int


@dataclass(slots=True)
class Faceted:
    """The ids that a filter allows, and the facets of all ids."""

    ids: list[int]
    facets: dict[str, list[Value]] = field(default_factory=dict)


def faceted(records: QuerySet[Record], ids: Sequence[int], only: Filter) -> Faceted:
    """Return the ids that the filter `only` allows, in their order, and the facets of all ids."""
    rows = records.filter(pk__in=ids).values_list(
        "pk", "deposition__source__name", "language", "datestamp__year"
    )
    values = {
        pk: {"source": source or DEPOSITED, "language": language or UNKNOWN, "year": str(year)}
        for pk, source, language, year in rows
    }
    facets = {name: _values(Counter(each[name] for each in values.values())) for name in TITLES}
    return Faceted([id for id in ids if id in values and only.allows(values[id])], facets)


def _values(counts: Counter[str]) -> list[Value]:
    return [
        Value(value, value.strip("()"), count) for value, count in counts.most_common(MOST_VALUES)
    ]
