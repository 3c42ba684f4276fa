"""Read a file as an import does, and keep all that comes of it."""

import re
import resource
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.unpack import Limits
from tailrace.domains.timeline.imports.files.parsing.values import iso_time
from tailrace.domains.timeline.imports.files.reading import read_points
from tailrace.domains.timeline.points.points import Point

TRACKS = Path(__file__).parents[2] / "data" / "tracks"
LATEST = iso_time("2026-03-01T00:00:00Z")


@dataclass
class Result:
    points: list[Point]
    tally: Tally
    error: FileError | None

    @property
    def formats(self) -> list[str]:
        return list(self.tally.formats)

    @property
    def places(self) -> list[tuple[float, float]]:
        """Latitudes and longitudes."""
        return [(lat / 1e7, lon / 1e7) for _, lon, lat, *_ in self.points]

    @property
    def times(self) -> list[int]:
        return [point[0] for point in self.points]


def read(file: bytes | str, limits: Limits | None = None) -> Result:
    """Read the bytes, or the file of that name under tests/data/tracks."""
    content = file if isinstance(file, bytes) else (TRACKS / file).read_bytes()
    tally = Tally(latest=LATEST)
    points: list[Point] = []
    error = None
    try:
        for batch in read_points(BytesIO(content), tally, limits):
            points += batch
    except FileError as raised:
        error = raised
    assert tally.accepted == len(points)
    return Result(points, tally, error)


def peak_megabytes() -> float:
    """Return the most memory that this process had. `ru_maxrss` also has what its parent had."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000_000
    [kilobytes] = re.findall(r"VmHWM:\s*(\d+)", status.read_text())
    return int(kilobytes) / 1000


def at(text: str) -> int:
    """The microseconds since 1970 of a time."""
    return iso_time(text)
