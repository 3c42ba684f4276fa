"""The keyword index: PostgreSQL's full text search."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db.models import F, Q, QuerySet

from tailrace.db.query import prepared, query
from tailrace.db.sql.arrays import number_array
from tailrace.domains.records.models import KeywordEntry, Record
from tailrace.domains.records.search.indexing.backends import LATE_FLUSH, IndexBackend

SIMPLE = "simple"
"""The configuration for unknown and unsupported languages. It does not normalise word forms."""
CONFIGURATION_OF = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french",
    "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch",
    "nn": "norwegian", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
NAMES = sorted({SIMPLE, *CONFIGURATION_OF.values()})
MOST_RANKED = 5000
"""Maximum number of matches that are ranked. Ranking all matches of a common word takes seconds."""
_SHORTER_FIRST = 1
"""Option of ts_rank: divide ranks by 1 + the logarithm of the text's length."""

_INDEX = f"""
WITH {LATE_FLUSH}
INSERT INTO tailrace_records_keywordentry AS entry (record_id, version, language, document)
SELECT r.id, r.version, r.language,
  setweight(to_tsvector(c.name, r.title), 'A')
  || setweight(to_tsvector(c.name, array_to_string(r.keywords, ' . ')), 'B')
  || setweight(to_tsvector(c.name, array_to_string(r.creators, ' . ')), 'C')
  || setweight(to_tsvector(c.name, r.description), 'D')
FROM late_flush, tailrace_records_record r,
  LATERAL (SELECT coalesce(%(configurations)s::jsonb ->> r.language, 'simple')::regconfig) c (name)
WHERE r.id = ANY(%(ids)s::bigint[]) AND NOT r.is_deleted
ORDER BY r.id
ON CONFLICT (record_id) DO UPDATE SET version = EXCLUDED.version, language = EXCLUDED.language,
  document = EXCLUDED.document
WHERE entry.version <= EXCLUDED.version
RETURNING record_id
"""
_QUERIES = """
SELECT min(name), array_agg(name) FROM unnest(%(names)s::text[]) name
WHERE numnode(websearch_to_tsquery(name::regconfig, %(text)s)) > 0
GROUP BY websearch_to_tsquery(name::regconfig, %(text)s)::text ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class WordQuery:
    """The query of a search text, for the languages in which it is the same."""

    query: SearchQuery
    configurations: list[str]
    """The text search configurations of these languages."""

    def condition(self) -> Q:
        languages = [
            language for language, name in CONFIGURATION_OF.items() if name in self.configurations
        ]
        in_language = Q(language__in=languages)
        if SIMPLE in self.configurations:
            in_language |= ~Q(language__in=list(CONFIGURATION_OF))
        return Q(document=self.query) & in_language


class KeywordIndex(IndexBackend):
    """Words, including their forms in the language of each record"""

    name = "keyword"
    title = "words"
    batch_size = 1

    def index(self, records: Sequence[Record]) -> None:
        ids = [record.pk for record in records]
        prepared(_INDEX, ids=number_array(ids), configurations=json.dumps(CONFIGURATION_OF))

    def remove(self, ids: Collection[int]) -> None:
        KeywordEntry.objects.filter(record__in=ids).delete()

    def search(self, text: str, records: QuerySet[Record], limit: int) -> list[int]:
        queries = word_queries(text)
        if not queries:
            return []
        condition = reduce(or_, [each.condition() for each in queries])
        matches = KeywordEntry.objects.filter(condition, record__in=records).values("pk")
        rank = SearchRank(F("document"), any_of(queries), normalization=_SHORTER_FIRST)
        rows = KeywordEntry.objects.filter(pk__in=matches[:MOST_RANKED]).annotate(rank=rank)
        return list(rows.order_by("-rank", "-pk").values_list("pk", flat=True)[:limit])


def word_queries(text: str) -> list[WordQuery]:
    """Return the queries of a search text; most languages share one query.

    The list is empty if the text contains only stop words.
    """
    return [
        WordQuery(SearchQuery(text, config=name, search_type="websearch"), names)
        for name, names in query(_QUERIES, names=NAMES, text=text)
    ]


def any_of(queries: Sequence[WordQuery]) -> SearchQuery:
    return reduce(or_, [each.query for each in queries])
