import json

import pytest

from tailrace.domains.timeline.imports.files.parsing.file_errors import LimitExceeded, Malformed
from tests.timeline.formats.reading import at, read

LINE = (
    b"2024-03-01T18:40:08Z\t*                 \t"
    b'{"_type":"location","lat":%d,"lon":2,"tst":1709318408}\n'
)


def test_only_locations_are_points() -> None:
    result = read("synthetic/owntracks-2024-03.rec")

    assert result.formats == ["owntracks_rec"]
    assert result.points[0] == (
        at("2024-03-01T18:40:08Z"), 134050000, 525200000, 34, 10, 0.0, 180,
    )  # fmt: skip
    assert (len(result.points), result.tally.read) == (2, 2)


def test_spaces_stand_for_tabs_and_two_lines_in_a_second_are_kept() -> None:
    lines = LINE % 1 + LINE.replace(b"\t", b"   ") % 2
    assert read(lines).places == [(1.0, 2.0), (2.0, 2.0)]


def test_without_tst_the_time_of_the_line_counts() -> None:
    line = b'2024-03-01T18:40:08Z\t*\t{"_type":"location","lat":1,"lon":2}\n'
    assert read(line).times == [at("2024-03-01T18:40:08Z")]


def test_speed_is_in_kilometres_per_hour() -> None:
    line = LINE.replace(b'"lon"', b'"vel":36,"lon"') % 1
    assert read(line).points[0][5] == pytest.approx(10)


@pytest.mark.parametrize("bad", [b"garbage\n", b"2024-03-01T18:40:08Z\t*\t{broken}\n", b"\xff\n"])
def test_a_bad_line_costs_one_point(bad: bytes) -> None:
    result = read(LINE % 1 + bad + b"\n" + LINE % 2)
    assert (len(result.points), result.error) == (2, None)
    [rejected] = result.tally.first_rejected
    assert (rejected.line, rejected.reason) == (2, "unparsable value")


def test_a_last_line_that_is_cut_is_an_error_and_one_without_an_end_is_not() -> None:
    whole = read((LINE % 1) * 3000 + (LINE % 2).rstrip())
    cut = read((LINE % 1) * 3000 + (LINE % 2)[:-10])

    assert (len(whole.points), whole.error) == (3001, None)
    assert len(cut.points) == 3000
    assert isinstance(cut.error, Malformed)
    assert cut.error.line == 3001
    assert cut.error.offset == len(LINE % 1) * 3000


def test_a_line_that_never_ends_is_refused() -> None:
    result = read(LINE % 1 + (LINE % 2).rstrip() + b" " * 300_000)
    assert len(result.points) == 1
    assert isinstance(result.error, LimitExceeded)
    assert result.error.line == 2


MESSAGES = [
    {"_type": "location", "lat": 1, "lon": 2, "tst": 1709318408, "acc": 10, "vel": 36, "tid": "an"},
    {"_type": "lwt", "tst": 1709318409},
    {"_type": "location", "lat": 3.5, "lon": 4, "isotst": "2024-03-01T18:40:10Z"},
]
PLACES, TIMES = [(1.0, 2.0), (3.5, 4.0)], [at("2024-03-01T18:40:08Z"), at("2024-03-01T18:40:10Z")]


@pytest.mark.parametrize(
    "whole",
    [
        {"count": 3, "data": MESSAGES, "status": 200},
        {"count": 3, "locations": MESSAGES},
        MESSAGES,
    ],
    ids=["API", "ocat", "a list"],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_the_json_of_the_recorder(whole: object, indent: int | None) -> None:
    result = read(json.dumps(whole, indent=indent).encode())
    assert result.formats == ["owntracks_json"]
    assert (result.places, result.times, result.error) == (PLACES, TIMES, None)
    assert result.points[0][4:6] == (10, pytest.approx(10))
    simple = read(json.dumps({"data": MESSAGES[:1] * 3000}).encode())
    assert len(simple.points) == 3000


def test_one_message_per_line() -> None:
    lines = "\n".join(json.dumps(message) for message in MESSAGES)
    for text in (lines, f"{lines}\n", lines.replace("\n", "\r\n\r\n")):
        result = read(text.encode())
        assert result.formats == ["owntracks_rec"]
        assert result.places == PLACES
    many = "\n".join([json.dumps(MESSAGES[0])] * 3000)
    assert len(read(many.encode()).points) == 3000
    assert len(read(json.dumps(MESSAGES[0]).encode()).points) == 1
