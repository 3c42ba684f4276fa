"""Responses of repositories are parsed with limits."""

import pytest

from tailrace.domains.records.sources import oai_response
from tailrace.domains.records.sources.dublin_core import language_code, to_metadata
from tailrace.domains.records.sources.formats import BadPage
from tailrace.domains.records.sources.oai_response import parse_datestamp, parse_response
from tailrace.domains.records.sources.token_trail import MAX_PAGES, EndlessList, TokenTrail

RECORD = """
<record><header><identifier>oai:1</identifier><datestamp>2026-01-02</datestamp></header><metadata>
<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"
 xmlns:dc="http://purl.org/dc/elements/1.1/">{elements}</oai_dc:dc></metadata></record>
"""


def response(elements: str = "", record: str = RECORD) -> bytes:
    return (
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>'
        f"{record.format(elements=elements)}</ListRecords></OAI-PMH>"
    ).encode()


def elements(*pairs: tuple[str, str]) -> str:
    return "".join(f"<dc:{name}>{text}</dc:{name}>" for name, text in pairs)


def test_repeated_elements_are_all_kept() -> None:
    body = response(
        elements(
            ("title", "  Snow\n depth "), ("title", "Schneehöhe"), ("creator", "Novak, Ana"),
            ("creator", "Kovač, Jan"), ("creator", "Novak, Ana"), ("subject", "snow"),
            ("subject", "x" * 201), ("description", "One\n\nTwo"), ("language", "slv"),
            ("language", "en"),
        )
    )  # fmt: skip
    [record] = parse_response(body).records
    assert to_metadata(record.elements) == {
        "title": "Snow depth",
        "description": "Schneehöhe\n\nOne\n\nTwo",
        "creators": ["Novak, Ana", "Kovač, Jan"],
        "keywords": ["snow"],
        "language": "sl",
    }


def test_control_characters_that_xml_forbids_are_left_out() -> None:
    [record] = parse_response(response(elements(("title", "a\x0bb&#x1;c&#38;d")))).records
    assert record.elements["title"] == ["abc&d"]


def test_the_language_of_a_title_counts_if_there_is_no_other() -> None:
    [record] = parse_response(response('<dc:title xml:lang="de-AT">Schnee</dc:title>')).records
    assert to_metadata(record.elements, record.language)["language"] == "de"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("en", "en"), ("EN-gb", "en"), ("en_US", "en"), ("ger", "de"), ("deu", "de"),
        ("Français", "fr"), ("http://id.loc.gov/vocabulary/iso639-2/slv", "sl"), ("xx", ""),
        ("", ""), ("zxx", ""), ("mi", "mi"),
    ],
)  # fmt: skip
def test_languages_are_known_in_many_forms(text: str, code: str) -> None:
    assert language_code(text) == code


def test_limits_of_a_page() -> None:
    long = response(elements(("title", "x" * 30_000), *[("subject", "s")] * 900))
    [record] = parse_response(long).records
    assert len(record.elements["title"][0]) == oai_response.MAX_TEXT
    assert sum(map(len, record.elements.values())) == oai_response.MAX_ELEMENTS
    many = response(record="".join([RECORD.format(elements="")] * 5001))
    with pytest.raises(BadPage, match="over 5,000 records"):
        parse_response(many)
    with pytest.raises(BadPage, match="without an identifier"):
        parse_response(response(record="<record><header/></record>"))
    named = f"<record><header><identifier>{'i' * 500}</identifier></header></record>"
    with pytest.raises(BadPage, match="identifier of 500 characters"):
        parse_response(response(record=named))


def test_datestamps_of_both_granularities() -> None:
    assert parse_datestamp("2026-01-02") == parse_datestamp("2026-01-02T00:00:00Z")
    assert parse_datestamp("yesterday") is None
    assert parse_datestamp("9999-12-31T23:59:59-23:00") is None


@pytest.mark.parametrize("length", [1, 2, 7, 100])
def test_a_circle_is_noticed_within_three_rounds(length: int) -> None:
    def go_round() -> None:
        trail = TokenTrail().add("begin")
        for number in range(10 + 4 * length):
            trail = trail.add(str(number % length))

    with pytest.raises(EndlessList, match="repeats itself"):
        go_round()


def test_a_list_has_an_end() -> None:
    with pytest.raises(EndlessList, match="has no end"):
        TokenTrail(pages=MAX_PAGES).add("another")
