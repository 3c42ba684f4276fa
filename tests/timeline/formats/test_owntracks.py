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
