"""Whatever comes from a backend: it is a page, or BadPage; and what is on a page gets recorded."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.domains.builds.event_types.catalogue import by_raw_type
from tailrace.domains.builds.sources.log_page import BadPage, IncompletePage, Page, repaired
from tailrace.domains.builds.sources.page_parser import PageParser
from tailrace.domains.builds.sources.record import record, to_event
from tailrace.events.models import Event
from tests.examples import few_and_many

OBS = Path(__file__).parents[2] / "data" / "obs"
fresh = count()


def parse(body: bytes, start: int) -> Page:
    """Parse a complete page that was read from `start`."""
    parser = PageParser(start, 2**24)
    parser.feed(body)
    return parser.finish()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(["project", "package", "comment", "user", "repo", "number", "odd", "\0"])
entries = anything | st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(sorted(by_raw_type())) | anything,
        "time": st.integers().map(str) | anything,
        "data": st.dictionaries(keys, anything) | anything,
    },
)


@pytest.mark.parametrize("stray", ["}", "]]", ",,", ":", "x", "\v", "\f", "\xa0", "1 \u2028"])
@pytest.mark.parametrize("size", [1, 100])
def test_a_stray_character_ends_the_parsing(stray, size):
    body = f'{{"notification":[{stray}}}'.encode()
    with pytest.raises(BadPage):
        parse_in_pieces(body, 40, size)


def test_a_page_that_ends_in_a_long_word_is_incomplete():
    with pytest.raises(IncompletePage):
        parse_in_pieces(b'{"notification":[' + 50 * b"x", 40, 60)


@pytest.mark.parametrize("size", [100, 10_000])
@pytest.mark.parametrize("text", [900 * "é", 900 * "\t", 300 * '"\\x'], ids=["é", "tab", "quotes"])
def test_a_big_entry_has_the_same_digest_in_both_views(text, size):
    values = {"a": text, "b": 50_000 * "y", "c": 9000 * "z"}
    entry = {"type": "T", "time": "5", "data": values}
    json_ = json.dumps({"notification": [entry], "next": 2}).encode()
    data = "".join(f'<data key="{key}">{value}</data>' for key, value in values.items())
    page = f'<notification type="T" time="5">{data}</notification></notifications>'
    xml = f'<notifications next="2">{page}'.encode()
    pages = [parse_in_pieces(body, 4000, size) for body in (json_, xml)]
    (from_json,), (from_xml,) = (page.notifications for page in pages)
    cut = {"a": text, "b": 1000 * "y" + "...", "c": 1000 * "z" + "...", "_cut": "b, c"}
    assert from_json.values == from_xml.values == cut
    assert from_json.digest == from_xml.digest


def parse_in_pieces(body: bytes, max_bytes: int, size: int) -> Page:
    parser = PageParser(1, max_bytes)
    for begin in range(0, len(body), size):
        parser.feed(body[begin : begin + size])
    return parser.finish()


def test_a_control_character_makes_xml_a_bad_page():
    with pytest.raises(BadPage, match="not well-formed"):
        parse((OBS / "32-ctrl-char-not-wellformed.body").read_bytes(), 39)
    (only,) = parse((OBS / "33-ctrl-char-json.body").read_bytes(), 39).notifications
    assert only.values == {"ctrl": "a\x01b"}


@pytest.mark.parametrize(
    "name", ["10-all-from-1", "40-limit-reached", "41-second-page", "45-still-there"]
)
def test_captured_pages_have_the_numbers_that_next_promises(name):
    # Number 39 of the second capture holds a control character, as it was on the disk.
    body = (OBS / f"{name}.body").read_bytes().replace(b"\x01", b"")
    start = {"10": 1, "40": 1, "41": 1001, "45": 1501}[name[:2]]
    page = parse(body, start)
    assert [entry.number for entry in page.notifications] == list(range(start, page.next))
    assert page.limit_reached == (name[:2] in ("40", "41"))


@pytest.mark.parametrize("name", ["43-sync-lost", "46-just-pruned"])
def test_captured_sync_lost_is_detected(name):
    assert parse((OBS / f"{name}.body").read_bytes(), 1).is_pruned
    assert parse((OBS / "44-sync-lost-json.body").read_bytes(), 1).is_pruned


def test_the_first_byte_tells_the_view():
    (woken,) = parse((OBS / "22-block-wakes.body").read_bytes(), 38).notifications
    assert woken.values == {"project": "home:alice", "repo": "standard", "state": "unpublished"}
    for odd in (b"", b"  ", b"[]", b"plain", b"<html><body>It works!</body></html>"):
        with pytest.raises(BadPage):
            parse(odd, 38)


def test_both_views_have_the_same_digests():
    xml = parse((OBS / "10-all-from-1.body").read_bytes(), 1)
    json_ = parse((OBS / "11-all-from-1-json.body").read_bytes(), 1)
    digests = [entry.digest for entry in xml.notifications]
    assert digests == [entry.digest for entry in json_.notifications]
    assert len(set(digests)) > 30


@given(st.binary(max_size=300), st.integers(1, 40))
def test_a_page_is_the_same_in_whatever_pieces_it_comes(odd, size):
    text = odd.decode("latin-1")
    items = [{"type": text, "time": "5", "data": {"a": text, text: [text, {}]}}, 7, text, None]
    body = json.dumps({"notification": items, "next": 5}, ensure_ascii=size % 2 == 0).encode()
    parser, parts = PageParser(1, 400), []
    for begin in range(0, len(body), size):
        parser.feed(body[begin : begin + size])
        if parser.is_full:
            parts.append(parser.part())
    parts.append(parser.finish())
    entries = [entry for part in parts for entry in part.notifications]
    assert [entry.number for entry in entries] == [1, 2, 3, 4]
    if len(json.dumps(items[0])) < 100:
        assert entries == parse(body, 1).notifications


def test_a_start_beyond_the_end_is_a_reset():
    page = parse((OBS / "15-start-far-beyond.body").read_bytes(), 5038)
    assert page.is_reset
    assert not page.notifications


def test_both_views_of_the_captured_log_are_equal():
    xml = parse((OBS / "10-all-from-1.body").read_bytes(), 1)
    assert xml == parse((OBS / "11-all-from-1-json.body").read_bytes(), 1)
    assert xml.notifications[36].occurred_at == datetime.fromtimestamp(1_795_220_447, UTC)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("Ã©", "é"),
        ("plain", "plain"),
        ("é", "é"),
        ("Python fÃ¼r alle", "Python für alle"),
        ("日本", "日本"),
        ("æ\x97¥", "日"),
        ("Ã", "Ã"),
        ("\ud83d", "\ud83d"),
    ],
)
def test_double_encoding_is_undone_and_nothing_else(sent, meant):
    assert repaired(sent) == meant


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_was_encoded_twice_comes_back(text):
    assert repaired(text.encode().decode("latin-1")) == text


@given(st.binary() | anything.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_page_or_bad_page(body):
    page = None
    with suppress(BadPage):
        page = parse(body, 1)
    assert page is None or page.next >= 1


@few_and_many(
    settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]),
    few=40,
    many=150,
    items=st.lists(entries, max_size=5),
)
@pytest.mark.django_db
def test_each_entry_of_any_page_is_recorded(items):
    body = json.dumps({"next": len(items) + 1, "notification": items}).encode()
    page = parse(body, 1)
    source = f"obs:any:{next(fresh)}"
    recorded = record(to_event(entry, source) for entry in page.notifications)
    assert [event.source_id for event in recorded] == [str(n + 1) for n in range(len(items))]
    assert Event.objects.filter(source=source).count() == len(items)
