import pytest

from tailrace.domains.timeline.imports.files.parsing.file_errors import (
    LimitExceeded,
    Malformed,
    NotXml,
)
from tests.timeline.formats.reading import at, read

GPX = b'<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>%s</trkseg></trk></gpx>'
POINT = '<trkpt lat="{}" lon="{}"><time>2024-03-01T08:14:00Z</time></trkpt>'


def track(*points: str) -> bytes:
    return GPX % "\n".join(points).encode()


def test_good_points_are_kept_and_bad_ones_counted_by_reason() -> None:
    result = read("synthetic/gpx-mixed-bad.gpx")

    assert result.times == [
        at("2024-03-01T08:14:00Z"),
        at("2024-03-01T08:14:01Z"),  # 09:14:01+01:00
        at("2024-03-01T08:14:02.123456Z"),
        at("2024-03-01T08:14:03Z"),  # without a zone
        at("2024-03-01T08:14:05Z"),  # its coordinates have a decimal comma
        at("2024-03-01T08:14:00Z"),
    ]
    assert result.places[4] == (52.5205, 13.4055)
    assert [point[3] for point in result.points[:2]] == [pytest.approx(34.1), None]
    assert dict(result.tally.rejected) == {
        "no time": 1,
        "no coordinates": 1,
        "coordinates out of range": 2,
        "unparsable value": 2,
        "time before 1990": 1,
        "time more than a day ahead": 1,
    }
    assert result.tally.read == 14


def test_a_rejected_point_has_its_line() -> None:
    result = read("synthetic/gpx-mixed-bad.gpx")

    assert [(one.line, one.reason) for one in result.tally.first_rejected[:3]] == [
        (7, "no time"),
        (9, "coordinates out of range"),
        (10, "coordinates out of range"),
    ]
    assert "NaN" in result.tally.first_rejected[1].text


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("gpx/georust-wikipedia_example.gpx", 3),
        ("gpx/gpxpy-gpx1.0_with_all_fields.gpx", 2),
        ("gpx/gpxpy-gpx1.1_with_all_fields.gpx", 2),
        ("gpx/gpxpy-track-with-empty-segment.gpx", 9),
        ("gpx/gpxpy-track-with-less-sec-time.gpx", 2),
        ("gpx/togeojson-osm.gpx", 175),
        ("gpx/togeojson-zero_elevation.gpx", 3),
        ("gpx-malformed/togeojson-empty_ele.gpx", 2),
        ("gpx-malformed/togeojson-empty_trk.gpx", 0),
        ("synthetic/gpx-undeclared-prefix.gpx", 1),
    ],
)
def test_files_of_other_projects(name: str, points: int) -> None:
    result = read(name)
    assert (len(result.points), result.error) == (points, None)


def test_a_planned_route_is_rejected_because_it_has_no_time() -> None:
    result = read("gpx/gpxpy-route.gpx")
    assert (result.points, dict(result.tally.rejected)) == ([], {"no time": 55})


def test_a_byte_order_mark_and_utf_16_are_read() -> None:
    text = track(POINT.format(1, 2)).decode()
    for encoded in (b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16")):
        assert read(encoded).places == [(1.0, 2.0)]


def test_elements_are_known_by_their_local_names() -> None:
    file = b"""<x:gpx xmlns:x="urn:x"><x:trk><x:trkseg><x:trkpt lat="1" lon="2">
        <x:ele>3</x:ele><x:time>2024-03-01T08:14:00Z</x:time></x:trkpt>
        </x:trkseg></x:trk></x:gpx>"""
    [point] = read(file).points
    assert point == (at("2024-03-01T08:14:00Z"), 20_000_000, 10_000_000, 3.0, None, None, None)


def test_speed_and_course_are_read_but_hdop_is_no_accuracy() -> None:
    point = """<trkpt lat="1" lon="2"><ele>3</ele><time>2024-03-01T08:14:00Z</time><hdop>1.5</hdop>
        <extensions><y:speed>4.5</y:speed><course>270</course></extensions></trkpt>"""
    assert read(track(point)).points[0][3:] == (3.0, None, 4.5, 270.0)


@pytest.mark.parametrize(
    ("lat", "lon", "reason"),
    [
        ("undefined", "2", "unparsable value"),
        ("", "2", "no coordinates"),
        ("100", "180", "coordinates out of range"),  # a pause of some receivers
        ("1", "inf", "coordinates out of range"),
        ("1", "1e400", "unparsable value"),
        ("1", "-180.0000001", "coordinates out of range"),
    ],
)
def test_bad_coordinates_cost_one_point_of_three(lat: str, lon: str, reason: str) -> None:
    good = POINT.format(1, 2)
    result = read(track(good, POINT.format(lat, lon), good))
    assert (len(result.points), dict(result.tally.rejected)) == (2, {reason: 1})
    assert result.tally.first_rejected[0].line == 2


@pytest.mark.parametrize("ele", ["", "NaN", "1e99", "high", " 34 "])
def test_an_altitude_that_is_none_costs_no_point(ele: str) -> None:
    point = f'<trkpt lat="1" lon="2"><ele>{ele}</ele><time>2024-03-01T08:14:00Z</time></trkpt>'
    [read_point] = read(track(point)).points
    assert read_point[3] == (34 if ele == " 34 " else None)


def test_a_file_that_is_cut_gives_what_came_before_and_the_place() -> None:
    result = read("synthetic/gpx-truncated.gpx")
    assert len(result.points) == 1
    assert isinstance(result.error, Malformed)
    assert str(result.error) == "The file ends in the middle (line 1, byte 125)"


def test_a_file_that_is_not_well_formed_gives_what_came_before_and_the_line() -> None:
    points = [POINT.format(1, n) for n in range(50)]
    points[30] = points[30].replace("</trkpt>", "</wrong>")
    result = read(track(*points))
    assert len(result.points) == 30
    assert isinstance(result.error, Malformed)
    assert (result.error.line, result.error.message) == (
        31,
        "This is not valid XML: an end tag does not match its start tag",
    )


def test_the_same_points_whatever_the_pieces_are_that_the_file_is_read_in() -> None:
    file = track(*[POINT.format(n / 100, n / 50) for n in range(5000)])
    assert read(file).places == [(n / 100, n / 50) for n in range(5000)]


def test_any_number_of_other_elements_may_come_before_and_within_a_point() -> None:
    others = "".join(f"<e{n % 500}/>" for n in range(3000))
    point = f'<trkpt lat="1" lon="2">{others}<time>2024-03-01T08:14:00Z</time></trkpt>'
    assert len(read(track(others, point, POINT.format(1, 2))).points) == 2


def test_entities_are_refused() -> None:
    bomb = b"""<?xml version="1.0"?><!DOCTYPE gpx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>
        <gpx><trk><name>&b;</name></trk></gpx>"""
    result = read(bomb)
    assert isinstance(result.error, LimitExceeded)
    assert "declares entities" in str(result.error)
    assert "line 1" in str(result.error)


def test_a_time_in_extensions_is_not_the_time_of_the_point() -> None:
    extensions = (
        "<extensions><x:fix><time>2020-01-01T00:00:00Z</time><ele>9</ele></x:fix></extensions>"
    )
    time = "<ele>3</ele><time>2024-03-01T08:14:00Z</time>"
    points = [
        f'<trkpt lat="1" lon="2">{extensions}{time}</trkpt>',
        f'<trkpt lat="1" lon="2">{time}{extensions}</trkpt>',
        f'<trkpt lat="1" lon="2">{extensions}</trkpt>',
    ]
    result = read(track(*points * 1000))
    assert set(result.points) == {
        (at("2024-03-01T08:14:00Z"), 20_000_000, 10_000_000, 3.0, None, None, None)
    }
    assert (len(result.points), dict(result.tally.rejected)) == (2000, {"no time": 1000})


def test_fields_behind_a_point_are_none_of_it() -> None:
    file = track(POINT.format(1, 2)).replace(b"</trkseg>", b"</trkseg><x:speed>5</x:speed>")
    assert read(file).points[0][3:] == (None,) * 4


@pytest.mark.parametrize("before", ["\n", " \r\n\t", "\ufeff\n\n"])
def test_white_space_before_the_declaration_is_passed_over(before: str) -> None:
    text = track(POINT.format(1, 2), POINT.format("x", 2)).decode()
    result = read(f'{before}<?xml version="1.0"?>{text}<!-- & -->&'.encode())
    assert result.places == [(1.0, 2.0)]
    lines = before.count("\n")
    [rejected] = result.tally.first_rejected
    assert (rejected.line, result.error and result.error.line) == (lines + 2, lines + 2)
    assert rejected.offset is not None
    assert f"{before}<?xml".encode()[rejected.offset :] == b""


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (b"Tom & Jerry", "This is not valid XML: “&” must be written as “&amp;”"),
        (b"Tom &Jerry ", "This is not valid XML: “&” must be written as “&amp;”"),
        (b"a\x01b", "This is not valid XML: the control character U+0001 is not allowed"),
        (b"\xff", "This is not valid XML: the text is not in the encoding that the file claims"),
        (b"&nbsp;", "This is not valid XML: the name after “&” is not known in XML"),
        (b"&#1;", "This is not valid XML: the number after “&#” is no character"),
        (b"<b>", "This is not valid XML: an end tag does not match its start tag"),
        (b'<b c="" c=""/>', "This is not valid XML: an attribute occurs twice in a tag"),
    ],
)
def test_what_is_wrong_with_xml_is_said_with_its_line(broken: bytes, sentence: str) -> None:
    good = POINT.format(1, 2)
    named = track(good, good, f"<name>{broken.decode('latin-1')}</name>", good)
    result = read(named.replace(broken.decode("latin-1").encode(), broken))
    assert len(result.points) == 2
    assert isinstance(result.error, NotXml)
    assert str(result.error).startswith(f"{sentence} (line 3, byte ")
    assert result.error.with_advice().endswith(
        "). Correct this line in a text editor, or export the file again."
    )


def test_what_follows_the_end_is_said_to_follow_it() -> None:
    result = read(track(POINT.format(1, 2)) + b"\nmore")
    assert "something follows the end of the XML (line 2, byte " in str(result.error)
    assert len(result.points) == 1


def test_digits_of_other_scripts_and_underscores_are_no_numbers() -> None:
    good = POINT.format(1, 2)
    for bad in ("1_0", "\u0661"):
        result = read(track(good, POINT.format(bad, 2), f"{good}<!-- by expat -->"))
        assert result.places == [(1.0, 2.0)] * 2
        assert dict(result.tally.rejected) == {"unparsable value": 1}
        altitude = good.replace("<time>", f"<ele>{bad}</ele><time>")
        assert [point[3] for point in read(track(good, altitude)).points] == [None, None]


def test_an_exponent_is_read() -> None:
    assert read(track(POINT.format("-2e-7", "1.5E1"))).places == [(-2e-7, 15.0)]
