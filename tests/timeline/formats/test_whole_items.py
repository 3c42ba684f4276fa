"""Items that are decoded many at a time are those that `json` decodes, each at its place."""

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from tailrace.domains.timeline.imports.files.parsing.file_errors import Malformed
from tailrace.domains.timeline.imports.files.parsing.json_stream import CHUNK, JsonStream
from tailrace.domains.timeline.imports.files.parsing.whole_items import WholeItems
from tests.examples import few_and_many
from tests.timeline.formats.reading import read

GOOD = {"latitudeE7": 1, "longitudeE7": 2, "timestamp": "2022-01-12T17:18:24.190Z"}
BAD = {"latitudeE7": 1, "timestamp": "2022-01-12T17:18:24.190Z"}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def items_of(content: bytes) -> list[Any]:
    pieces = JsonStream(BytesIO(content)).lists(["items"])
    return [value for items in pieces for value in items.values]


@few_and_many(
    settings(deadline=None),
    few=8,
    many=20,
    items=st.lists(st.dictionaries(st.sampled_from('ab"}'), values) | values, min_size=1),
    indent=st.sampled_from([None, 0, 2]),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")]),
    ascii_only=st.booleans(),
)
def test_they_are_those_that_json_decodes(
    items: list[Any], indent: int | None, separators: tuple[str, str], ascii_only: bool
) -> None:
    """The file is larger than what is read at once."""
    many = {"items": items * (100_000 // len(json.dumps(items)) + 1), "others": items}
    text = json.dumps(many, indent=indent, separators=separators, ensure_ascii=ascii_only)
    content = text.encode("utf-8", "surrogateescape")
    # NaN is not equal to itself.
    assert repr(items_of(content)) == repr(json.loads(content)["items"])


@pytest.mark.parametrize("indent", [None, 2])
def test_a_rejected_one_has_its_number_line_and_byte(indent: int | None) -> None:
    records: list[Any] = [GOOD | {"name": "é" * (n % 9)} for n in range(4000)]
    records[2500] = records[3999] = BAD
    content = json.dumps({"locations": records}, indent=indent, ensure_ascii=False).encode()

    first, last = read(content).tally.first_rejected

    assert (first.record, last.record) == (2501, 4000)
    for rejected in (first, last):
        assert rejected.offset is not None
        before = content[: rejected.offset]
        assert rejected.line == before.count(b"\n") + 1
        value, _ = json.JSONDecoder().raw_decode(content[rejected.offset :].decode())
        assert value == BAD


@pytest.mark.parametrize(
    "odd", ['{"a": "\\ud800"}', '{"a": ' + "[" * 250 + "]" * 250 + "}", '{"a": "\udcff"}']
)
def test_what_the_fast_decoder_refuses_is_decoded_by_json(odd: str) -> None:
    text = f'{{"items": [{", ".join(["{}"] * 30_000 + [odd] + ["{}"] * 30_000)}]}}'
    content = text.encode("utf-8", "surrogateescape")
    assert len(items_of(content)) == 60_001


def test_items_are_decoded_in_one_call() -> None:
    text = '{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4'
    whole = WholeItems()
    whole.learn(text, text.index('{"a": 2'))
    assert whole.decode(text, 0) == ([{"a": 1}, {"a": 2}, {"a": 3}], text.index('{"a": 4'))


def test_a_separator_within_an_item_costs_little_and_ends_nothing() -> None:
    text = '{"a": 1},{"a": [{"a": 1},{"a": 2'
    whole = WholeItems()
    for _ in range(10):
        whole.learn(text, text.index('{"a": ['))
        assert whole.decode(text, 0) is None


@pytest.mark.parametrize("number", ["0.5", "-12.25", "1e5", "1.5E-3", "2e+2", "-7"])
@pytest.mark.parametrize("before", ["[1,", '{"accuracy": '])
def test_a_number_that_a_chunk_cuts_anywhere_is_read_whole(number: str, before: str) -> None:
    end = "]" if before[0] == "[" else ', "list": [1]}'
    for cut in range(1, len(number) + 1):
        spaces = " " * (CHUNK - len(before) - cut)
        content = f"{before}{spaces}{number}{end}".encode()
        assert content[CHUNK - cut : CHUNK] == number[:cut].encode()
        members: dict[str, Any] = {"accuracy": None}
        stream = JsonStream(BytesIO(content))
        values = [value for items in stream.lists(["", "list"], members) for value in items.values]
        assert (values if before[0] == "[" else [1, members["accuracy"]]) == [1, float(number)]


@pytest.mark.parametrize("rest", ["1.", "1.]", "1e", "1.x]"])
def test_half_a_number_is_no_number(rest: str) -> None:
    with pytest.raises(Malformed):
        items_of(b"[" + b" " * (CHUNK - 3) + rest.encode())
