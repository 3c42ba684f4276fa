"""Plain points are read by a regular expression instead of expat: nothing else may differ."""

import random
import re

import pytest

from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tests.timeline.formats.reading import Result, read

HEAD = '<?xml version="1.0"?>\n<gpx version="1.1"><trk><trkseg>\n'
END = "</trkseg></trk></gpx>\n"
VALUES = ["52.5", "-13.0000001", "100", "", "nan", "1e1", "x", "13,5"]
TIMES = [
    "2024-03-01T08:14:00Z",
    "2024-03-01T08:14:00.123Z",
    "1970-01-01T00:00:00Z",
    "",
    "T",
    "2024",
]


MORE = [
    "<extensions><x:TrackPoint>\n  <x:hr>120</x:hr><x:cad>80</x:cad>\n</x:TrackPoint></extensions>",
    "<extensions><power>7</power><a><b></b><c>1</c></a></extensions>",
    "<speed>1.5</speed><course>90</course><speed>7</speed>",
    "<extensions><x:speed>2.5</x:speed><a><y:accuracy>7</y:accuracy></a></extensions>",
    "<extensions><maxspeed>2.5</maxspeed></extensions>",
    "<extensions><speed><a>1</a></speed><speed>3</speed></extensions>",
    "<extensions><ele>100</ele><x:time>2020-01-01T00:00:00Z</x:time></extensions>",
    "<extensions><a><b><c><d>1</d></c></b></a></extensions>",
    "<extensions><a><rtept>1</rtept></a></extensions>",
    "<extensions/><a b='1'>x &amp; y</a><speed>-1</speed><accuracy>far</accuracy>",
]


def point(random_: random.Random, odd: float = 0, more: str = "") -> str:
    """A point; `odd` is the share of values that are not as they should be, `more` stands behind
    the time."""

    def some(values: list[str]) -> str:
        return random_.choice(values) if random_.random() < odd else values[0]

    lat, lon, ele = some(VALUES), f"{random_.uniform(-180, 180):.7f}", some(VALUES)
    space = random_.choice(["", "\n  "])
    return (
        f'<trkpt lat="{lat}" lon="{lon}">{space}<ele>{ele}</ele>{space}<time>{some(TIMES)}</time>'
        f"<hdop>1.5</hdop>{space}{more}</trkpt>\n"
    )


def by_expat(file: str) -> Result:
    """Read it with attributes in single quotes, which only expat reads."""
    return read(re.sub(r'lat="(.*?)" lon="(.*?)"', r"lat='\1' lon='\2'", file).encode())


def places(result: Result) -> list[tuple[str, int | None, int | None]]:
    return [(one.reason, one.line, one.offset) for one in result.tally.first_rejected]


def place(error: FileError | None) -> tuple[object, ...]:
    return (error and error.message, error and error.line)


@pytest.mark.parametrize("seed", range(4))
def test_both_give_the_same_points_and_rejections(seed: int) -> None:
    random_ = random.Random(seed)
    file = HEAD + "".join(point(random_, 0.01 * (n % 2000 > 1900)) for n in range(9000)) + END

    plain, other = read(file.encode()), by_expat(file)

    assert len(plain.points) > 8900
    assert plain.points == other.points
    assert places(plain) == places(other)
    assert plain.tally.rejected == other.tally.rejected
    assert plain.tally.rejected


@pytest.mark.parametrize("more", [[one] for one in MORE] + [MORE[:3], MORE])
def test_both_give_the_same_measures(more: list[str]) -> None:
    random_ = random.Random(1)
    lines = [point(random_, more=random_.choice(more)) for _ in range(1200)]
    file = HEAD + "".join(lines) + END

    plain, other = read(file.encode()), by_expat(file)

    assert plain.error is None
    assert plain.tally.read >= 1200
    assert plain.points == other.points
    assert plain.tally.rejected == other.tally.rejected


@pytest.mark.parametrize(
    "broken",
    [
        "<a><b>1</c></a>",
        "<a><b>1</a></b>",
        "<a>1</A>",
        "<a><b><c>1</c></a></b>",
        "<1>1</1>",
        "<a:>1</b:>",
        "<a>",
    ],
)
def test_both_refuse_extensions_that_are_not_well_formed(broken: str) -> None:
    random_ = random.Random(1)
    lines = [point(random_, more=MORE[0]) for _ in range(2000)]
    lines[1500] = point(random_, more=f"<extensions>{broken}</extensions>")
    file = HEAD + "".join(lines) + END

    plain, other = read(file.encode()), by_expat(file)

    assert plain.error is not None
    assert place(plain.error) == place(other.error)
    assert plain.points == other.points


@pytest.mark.parametrize(
    "broken",
    ["<trkpt>", "</trkseg></trkseg>", "&nothing;", "<!-- </trkpt>", "<![CDATA[</trkpt>", "<a b=>"],
)
def test_both_give_the_same_error_at_the_same_line(broken: str) -> None:
    random_ = random.Random(1)
    lines = [point(random_) for _ in range(3000)]
    lines[2000] = broken
    file = HEAD + "".join(lines)

    plain, other = read(file.encode()), by_expat(file)

    assert plain.error is not None
    assert place(plain.error) == place(other.error)
    assert plain.points == other.points


def test_a_point_in_a_comment_is_none() -> None:
    random_ = random.Random(1)
    lines = [point(random_) for _ in range(3000)]
    hidden = [*lines[:1000], "<!-- ", *lines[1000:2000], " -->", *lines[2000:]]
    result = read((HEAD + "".join(hidden) + END).encode())
    assert result.error is None
    assert result.tally.read == 2000
