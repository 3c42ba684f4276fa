"""Convert elements of unqualified Dublin Core to the metadata of a deposition."""

from collections.abc import Mapping, Sequence
from typing import Any

from tailrace.domains.records.depositions.languages import LANGUAGES

Elements = Mapping[str, Sequence[str]]
MAX_KEYWORD = 200
"""Maximum length of a keyword; longer subjects are left out."""

# For the most common languages of publications: the code of ISO 639-1, the codes of ISO 639-2 (T
# and B), and names.
_LANGUAGES = """
af afr afrikaans | am amh amharic | ar ara arabic | az aze azerbaijani | be bel belarusian
| bg bul bulgarian | bn ben bengali | bs bos bosnian | ca cat catalan | cs ces cze czech
| cy cym wel welsh | da dan danish | de deu ger german deutsch | el ell gre greek
| en eng english | eo epo esperanto | es spa spanish español castellano | et est estonian
| eu eus baq basque | fa fas per persian | fi fin finnish suomi | fr fra fre french français
| ga gle irish | gl glg galician | gu guj gujarati | he heb hebrew | hi hin hindi
| hr hrv scr croatian | hu hun hungarian magyar | hy hye arm armenian | id ind indonesian
| is isl ice icelandic | it ita italian italiano | ja jpn japanese | ka kat geo georgian
| kk kaz kazakh | kn kan kannada | ko kor korean | la lat latin | lt lit lithuanian
| lv lav latvian | mk mkd mac macedonian | ml mal malayalam | mn mon mongolian | mr mar marathi
| ms msa may malay | my mya bur burmese | nb nob | ne nep nepali | nl nld dut dutch nederlands
| nn nno | no nor norwegian norsk | pa pan panjabi punjabi | pl pol polish polski
| pt por portuguese português | ro ron rum romanian | ru rus russian | sk slk slo slovak
| sl slv slovenian slovene | sq sqi alb albanian | sr srp scc serbian | sv swe swedish svenska
| sw swa swahili | ta tam tamil | te tel telugu | th tha thai | tr tur turkish türkçe
| uk ukr ukrainian | ur urd urdu | uz uzb uzbek | vi vie vietnamese | zh zho chi chinese
"""
_CODES = {
    form: forms.split()[0] for forms in _LANGUAGES.split("|") for form in forms.lower().split()
}


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


def language_code(text: str) -> str:
    """Return the code of a language that is written as `en`, `en-GB`, `eng`, `English`, or as a URI
    that ends with one of these; empty if the language is unknown."""
    last = text.strip().lower().rpartition("/")[2]
    first = last.replace("_", "-").partition("-")[0]
    return _CODES.get(last) or _CODES.get(first) or (first if first in LANGUAGES else "")
