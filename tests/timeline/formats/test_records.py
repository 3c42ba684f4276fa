import json
from io import BytesIO
from itertools import chain
from typing import Any

import pytest

from tailrace.domains.timeline.imports.files.formats.records import Records
from tailrace.domains.timeline.imports.files.parsing.file_errors import Malformed
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tests.timeline.formats.reading import LATEST, at, read

GOOD = {"timestamp": "2022-01-12T17:18:24.190Z", "latitudeE7": 1, "longitudeE7": 2}


def records(*items: Any) -> bytes:
    return json.dumps({"locations": items}).encode()


@pytest.mark.parametrize("name", ["Records-variants.json", "Records-bom.json"])
def test_all_variants_of_records(name: str) -> None:
    result = read(f"synthetic/{name}")

    assert result.points[0] == (
        at("2022-01-12T17:18:24.190Z"), 21684775, 414216106, 89, 47, 0, 188,
    )  # fmt: skip
    assert result.times[2] == 1486110600090 * 1000
    assert result.times[3] == at("2015-05-07T12:08:07Z")  # seconds in timestampMs
    # Their sign was lost: too large by 2^32.
    assert result.places[4] == pytest.approx((-33.8967296, -1.6967296))
    assert dict(result.tally.rejected) == {"no coordinates": 1, "time before 1990": 1}
    assert result.tally.read == 8


def test_a_rejected_record_has_its_number_line_and_byte() -> None:
    content = b'{"locations": [\n' + json.dumps(GOOD).encode() + b',\n{"timestamp": "x"}]}'
    [rejected] = read(content).tally.first_rejected
    assert (rejected.record, rejected.line) == (2, 3)
    assert content[rejected.offset or 0 :].startswith(b'{"timestamp": "x"}')


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({**GOOD, "timestamp": None}, "no time"),
        ({**GOOD, "timestamp": "yesterday"}, "unparsable value"),
        ({**GOOD, "timestamp": 17}, "unparsable value"),
        ({**GOOD, "latitudeE7": "north"}, "unparsable value"),
        ({**GOOD, "latitudeE7": [1]}, "unparsable value"),
        ({**GOOD, "latitudeE7": float("nan")}, "coordinates out of range"),
        ({**GOOD, "latitudeE7": 10**30}, "coordinates out of range"),
        ({**GOOD, "longitudeE7": -1_800_000_001}, "coordinates out of range"),
        ({**GOOD, "timestamp": "2027-01-01T00:00:00Z"}, "time more than a day ahead"),
        ("text", "unparsable value"),
        (None, "unparsable value"),
        ([[]], "unparsable value"),
    ],
)
def test_a_bad_record_costs_one_of_three(record: Any, reason: str) -> None:
    result = read(records(GOOD, record, GOOD))
    assert (len(result.points), dict(result.tally.rejected)) == (2, {reason: 1})


@pytest.mark.parametrize(
    ("time", "count"),
    [
        ({"timestampMs": "1641999504190"}, 1),
        ({"timestampMs": 1641999504190}, 1),
        ({"timestamp": None, "timestampMs": "1641999504190"}, 1),
        ({"timestamp": "1641999504190"}, 0),
        ({"timestampMs": "2022-01-12T14:58:24.190Z"}, 0),
    ],
)
@pytest.mark.parametrize("others", [0, 2])
def test_timestamp_is_iso_8601_and_timestampms_a_number(
    time: dict[str, Any], count: int, others: int
) -> None:
    record = {**time, "latitudeE7": 1, "longitudeE7": 2}
    result = read(records(*[record] * 2, *[GOOD] * others))
    assert result.times[: 2 * count] == [at("2022-01-12T14:58:24.190Z")] * (2 * count)
    assert len(result.points) == 2 * count + others


@pytest.mark.parametrize("wrong", [{"timestamp": "x"}, {"latitudeE7": 10**10}])
def test_the_whole_record_is_shown_with_the_reason(wrong: dict[str, Any]) -> None:
    record = {**GOOD, **wrong, "source": "WIFI" * 100}
    [rejected] = read(records(record)).tally.first_rejected
    assert rejected.text == str(record)[:200]


def test_only_the_first_hundred_rejected_are_kept_and_all_are_counted() -> None:
    result = read(records(GOOD, *[{"deviceTag": 1}] * 250))
    assert len(result.tally.first_rejected) == 100
    assert result.tally.rejected.total() == 250


def test_a_surrogate_or_zero_in_a_rejected_record_can_be_stored() -> None:
    result = read(b'{"locations": [{"latitudeE7": "\\ud800 \\u0000", "longitudeE7": 1}]}')
    result.tally.first_rejected[0].text.encode()
    assert "\0" not in result.tally.first_rejected[0].text


def test_a_file_that_is_cut_gives_what_came_before_and_the_place() -> None:
    result = read("synthetic/Records-truncated.json")
    assert len(result.points) == 2
    assert isinstance(result.error, Malformed)
    assert str(result.error) == "The file ends in the middle (line 4, byte 342)"


@pytest.mark.parametrize("cut", range(40, 2000, 97))
def test_wherever_a_file_is_cut_all_whole_records_are_read(cut: int) -> None:
    one = json.dumps(GOOD).encode()
    content = records(*[GOOD] * 20)[:cut]
    result = read(content)
    assert len(result.points) in (content.count(one), content.count(one) - 1)
    assert (result.error is None) == (content.endswith(b"]}"))


@pytest.mark.parametrize("broken", [b"nope", b"{'a': 1}", b"{} {}", b"{},", b'{"a" 1}', b"\x00"])
def test_what_is_no_json_stops_the_file_at_its_line(broken: bytes) -> None:
    lines = [json.dumps(GOOD).encode()] * 3000
    lines[1000] = broken
    result = read(b'{"locations": [' + b",\n".join(lines) + b"]}")
    assert len(result.points) == 1000
    assert isinstance(result.error, Malformed)
    assert result.error.line in (1001, 1002)


def test_other_members_and_nested_records_are_passed_over() -> None:
    scan = {"activity": [{"timestampMs": "1"}], "activeWifiScan": {"accessPoints": [{"mac": 1}]}}
    content = {
        "settings": {"a": [1, {"b": None}]},
        "others": [1, [2], "x"],
        "empty": [],
        "locations": [{**GOOD, **scan}] * 3,
        "end": True,
    }
    result = read(json.dumps(content, indent=2).encode())
    assert (len(result.points), result.error) == (3, None)


def test_a_large_file_is_read_in_pieces_with_every_record_once() -> None:
    count = 5000
    result = read(
        records(*[{**GOOD, "latitudeE7": n, "name": "é" * (n % 50)} for n in range(count)])
    )
    assert [lat for _, _, lat, *_ in result.points] == list(range(count))


@pytest.mark.parametrize("separator", [",", ",\n    ", " , "])
def test_a_piece_may_end_anywhere_between_two_records(separator: str) -> None:
    """Pieces of 65,536 bytes, so that one ends at each place of a record and of the space."""
    text = separator.join([json.dumps(GOOD | {"a": "x" * 7})] * 14_000)
    result = read(b'{"locations": [' + text.encode() + b"]}")
    assert (len(result.points), result.error) == (14_000, None)


def test_a_stream_that_gives_little_at_a_time_is_read_all_the_same() -> None:
    content = records(*[GOOD] * 3000)
    tally = Tally(latest=LATEST)
    points = list(chain.from_iterable(Records().read(Trickle(content), tally)))
    assert len(points) == 3000


class Trickle:
    """A stream of a few bytes at a time."""

    def __init__(self, content: bytes) -> None:
        self._content = BytesIO(content)

    def read(self, size: int) -> bytes:
        return self._content.read(min(size, 1000))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_and_positions_are_bytes_of_the_file(encoding: str) -> None:
    record = {"latitudeE7": 1, "longitudeE7": 2, "timestamp": "2024-03-01T08:14:00Z", "x": "Zürich"}
    text = json.dumps({"locations": [*[record] * 3000, {"é": 1}, record]}, ensure_ascii=False)
    file = text.encode(encoding)
    result = read(file)
    assert (len(result.points), result.error) == (3001, None)
    [rejected] = result.tally.first_rejected
    assert (
        file[rejected.offset :].decode("utf-16-be" if encoding[-2:] == "be" else "utf-16-le")[:6]
        == '{"é": '
    )
    cut = read(file[:-5])
    assert "The file ends in the middle" in str(cut.error)
    assert len(cut.points) == 3000
