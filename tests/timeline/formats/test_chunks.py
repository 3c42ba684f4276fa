"""Where a file is cut into the pieces that are read makes no difference."""

import json
from pathlib import Path

import pytest

from tailrace.domains.timeline.imports.files.parsing import json_stream
from tests.timeline.formats.reading import TRACKS, read

RECORDS = [
    {"latitudeE7": n, "longitudeE7": -n, "timestamp": f"2024-03-01T08:{n:02d}:00Z", "deviceTag": n}
    for n in range(40)
]
FILES = [path for path in sorted(TRACKS.rglob("*.*json")) if path.stat().st_size < 20_000]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_may_be_cut_anywhere(monkeypatch, indent: int | None) -> None:
    file = json.dumps({"locations": RECORDS}, indent=indent).encode()
    for chunk in range(1, 200):
        monkeypatch.setattr(json_stream, "CHUNK", chunk)
        result = read(file)
        assert (len(result.points), result.error) == (40, None), f"pieces of {chunk} bytes"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_as_they_are_exported_may_be_cut_anywhere(monkeypatch, path: Path) -> None:
    whole = read(path.read_bytes())
    for chunk in (1, 7, 64, 1021):
        monkeypatch.setattr(json_stream, "CHUNK", chunk)
        cut = read(path.read_bytes())
        assert (cut.points, cut.tally) == (whole.points, whole.tally)
        assert str(cut.error) == str(whole.error)
