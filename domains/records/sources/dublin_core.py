"""Convert elements of unqualified Dublin Core to the metadata of a deposition."""

from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.domains.records.sources.languages import language_code

Elements = Mapping[str, Sequence[str]]
MAX_KEYWORD = 200
"""Maximum length of a keyword; longer subjects are left out."""


def to_metadata(elements: Elements, title_language: str = "") -> dict[str, Any]:
    """Return the metadata of a record with these elements, which may all be repeated.

    The first title becomes the title. Other titles are put before the description, so that the
    search finds them. `title_language` is the xml:lang of a title, for records without a language
    element.
    """
    titles = _lines(elements, "title")
    texts = [*titles[1:], *_texts(elements, "description", "abstract")]
    languages = [language_code(text) for text in (*_lines(elements, "language"), title_language)]
    metadata = {
        "title": titles[0] if titles else "",
        "description": "\n\n".join(texts),
        "creators": _lines(elements, "creator") or _lines(elements, "contributor", "publisher"),
        "keywords": [text for text in _lines(elements, "subject") if len(text) <= MAX_KEYWORD],
        "language": next(filter(None, languages), ""),
    }
    return {name: value for name, value in metadata.items() if value}


def _texts(elements: Elements, *names: str) -> list[str]:
    """Return the texts of these elements in their order, without duplicates."""
    return list(dict.fromkeys(text for name in names for text in elements.get(name, ())))


def _lines(elements: Elements, *names: str) -> list[str]:
    """Like `_texts`, with each text on one line."""
    return list(dict.fromkeys(" ".join(text.split()) for text in _texts(elements, *names)))
