"""Snippets of records with the words of the search marked, as parts of text.

The parts are plain text, not HTML. Callers must escape them.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.db.query import query
from tailrace.domains.records.search.indexing.keyword import CONFIGURATION_OF
from tailrace.web.api.schemas import Out

MOST_READ = 10_000
"""Number of characters of a description in which words are searched."""
_BEGIN, _END = "\x02", "\x03"
"""Marks around each match. They are first removed from the texts themselves."""
_MATCH = re.compile(f"{_BEGIN}([^{_BEGIN}{_END}]*){_END}")


class PartOut(Out):
    text: str
    """Plain text."""
    is_match: bool
    """Whether this part of a title or a description matches the search."""


@dataclass(frozen=True, slots=True)
class Snippet:
    title: list[PartOut]
    description: list[PartOut]


_SNIPPETS = """
SELECT r.id,
  ts_headline(c.name, translate(r.title, %(marks)s, ''), q.query,
    %(options)s || ',HighlightAll=true'),
  ts_headline(c.name, translate(left(r.description, %(most)s), %(marks)s, ''), q.query,
    %(options)s || ',MaxFragments=2,MinWords=8,MaxWords=30,FragmentDelimiter=" … "')
FROM tailrace_records_record r,
  LATERAL (SELECT coalesce(%(configurations)s::jsonb ->> r.language, 'simple')::regconfig) c (name),
  LATERAL (SELECT websearch_to_tsquery(c.name, %(text)s)) q (query)
WHERE r.id = ANY(%(ids)s)
"""


def snippets(ids: Sequence[int], text: str) -> dict[int, Snippet]:
    rows = query(
        _SNIPPETS,
        ids=list(ids),
        text=text,
        most=MOST_READ,
        marks=_BEGIN + _END,
        options=f'StartSel="{_BEGIN}",StopSel="{_END}"',
        configurations=json.dumps(CONFIGURATION_OF),
    )
    return {id: Snippet(_parts(title), _parts(description)) for id, title, description in rows}


def _parts(marked: str) -> list[PartOut]:
    """Return the parts of a text with marks. Every second part was between marks."""
    pieces = _MATCH.split(marked)
    return [
        PartOut(text=text, is_match=number % 2 == 1) for number, text in enumerate(pieces) if text
    ]
