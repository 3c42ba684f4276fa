"""Files that are broken, or made to do harm, as whole uploads: by the page and by the API, through
the real steps. Each ends with a message that says what is wrong, where, and the way out; in little
time and memory; and nothing is left of it."""

import gzip
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.timeline.models import Import
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import files_in, now, send, staged_tables, stored, upload
from tests.web.program import Program
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
MB = 1_000_000
TIME = "2024-03-01T08:14:00Z"
POINT = f'<trkpt lat="52.52" lon="13.405"><time>{TIME}</time></trkpt>'.encode()
GPX = b"<gpx><trk><trkseg>" + POINT + b"</trkseg></trk></gpx>"
RECORD = f'{{"timestamp": "{TIME}", "latitudeE7": 525200000, "longitudeE7": 134050000}}'.encode()
RECORDS = b'{"locations": [' + RECORD + b"]}"
FORMATS = "GPX, GeoJSON, Google Takeout or Timeline and OwnTracks files can be imported."
AGAIN = "Export or download the file again."
CORRECT = "Correct this line in a text editor, or export the file again."
SMALLER = "Export the data again in smaller files, or as GPX or GeoJSON."
SECONDS = 5.0
"""Of the processor, for an import from its upload to its end."""


def zipped(*files: tuple[str, bytes]) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return packed.getvalue()


def entities() -> bytes:
    """A billion laughs."""
    more = b"".join(b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))
    return b'<!DOCTYPE gpx [<!ENTITY a0 "ha">' + more + b"]><gpx><name>&a9;</name></gpx>"


FAILED: dict[str, tuple[Callable[[], bytes], str]] = {
    "spaces": (lambda: b" \n" * 500, f"The file is empty. {FORMATS}"),
    "zeros": (lambda: bytes(5000), f"The file is empty. {FORMATS}"),
    "cut before its first point": (
        lambda: GPX[:40],
        f"The file ends in the middle (line 1, byte 18). {AGAIN}",
    ),
    "a zip that is cut": (
        lambda: zipped(("a.gpx", GPX))[:-5],
        f"The archive ends in the middle. {AGAIN}",
    ),
    "a gzip that is cut": (
        lambda: gzip.compress(GPX)[:20],
        f"The archive ends in the middle (byte 9). {AGAIN}",
    ),
    "binary": (
        lambda: random.Random(1).randbytes(100_000),
        f"This is a binary file, not a location history that we can read. {FORMATS}",
    ),
    "a web page": (
        lambda: b'<?xml version="1.0"?>\n<!DOCTYPE html>\n<html><body>Sign in</body></html>',
        f"This is a web page, not a location history: was the download behind a login? {FORMATS}",
    ),
    "a zip bomb": (
        lambda: zipped(("a.gpx", b"<gpx>" + (b"<a>" + b" " * 10_000 + b"</a>") * 8000)),
        f"The archive unpacks to more than 64 MB, which is not accepted (in a.gpx). {SMALLER}",
    ),
    "a gzip bomb": (
        lambda: gzip.compress(b"<gpx>" + (b"<a>" + b" " * 10_000 + b"</a>") * 8000, 6),
        f"The archive unpacks to more than 64 MB, which is not accepted. {SMALLER}",
    ),
    "gzip in gzip": (
        lambda: gzip.compress(gzip.compress(GPX)),
        "This is an archive within an archive, which is not unpacked: unpack it first. " + FORMATS,
    ),
    "an entity bomb": (
        entities,
        f"The file declares entities, which is not allowed (line 1, byte 27). {SMALLER}",
    ),
    "an entity of the server's files": (
        lambda: b'<!DOCTYPE gpx [<!ENTITY a SYSTEM "file:///etc/passwd">]><gpx>&a;</gpx>',
        f"The file declares entities, which is not allowed (line 1, byte 53). {SMALLER}",
    ),
    "elements nested deep": (
        lambda: b"<gpx>" + b"<a>" * 100_000,
        f"The elements are nested too deep (line 1, byte 302). {SMALLER}",
    ),
    "a string of 100 MB": (
        lambda: b'{"locations": [{"latitudeE7": 1, "timestamp": "' + b"x" * (100 * MB) + b'"}]}',
        f"One value is longer than 2 MB (line 1, byte 15). {SMALLER}",
    ),
    "a zip in a zip": (
        lambda: zipped(("inner.zip", zipped(("a.gpx", GPX)))),
        "No file in this archive is a location history that we can read. Nested archives are not"
        f" unpacked. {FORMATS}",
    ),
    "a name that is HTML": (
        lambda: zipped(("<b>a</b>.gpx", GPX[:40])),
        f"The file ends in the middle (in <b>a</b>.gpx, line 1, byte 18). {AGAIN}",
    ),
}
"""Name → file, the whole message of an import that fails."""

PART: dict[str, tuple[Callable[[], bytes], str]] = {
    "cut": (lambda: GPX[:-21], "The file ends in the middle (line 1, byte 91)."),
    "a list nested deep": (
        lambda: RECORDS[:-2] + b", " + b"[" * MB,
        f"The values are nested too deep (line 1, byte 105). {SMALLER}",
    ),
    "a second file that is cut": (
        lambda: zipped(("a.gpx", GPX), ("b.json", RECORDS[:-1])),
        f"The file ends in the middle (in b.json, line 1, byte 104). {AGAIN}",
    ),
    "another file behind its end": (
        lambda: GPX + zipped(("a.gpx", GPX)),
        "This is not valid XML: something follows the end of the XML (line 1, byte 114)."
        f" {CORRECT}",
    ),
    "an ampersand": (
        lambda: GPX.replace(b"</trkseg>", b"\n</trkseg><name>Tom & Jerry</name>"),
        f"This is not valid XML: “&” must be written as “&amp;” (line 2, byte 112). {CORRECT}",
    ),
    "a control character": (
        lambda: GPX.replace(b"</trkseg>", b"\n\n</trkseg><name>\x01</name>"),
        "This is not valid XML: the control character U+0001 is not allowed (line 3, byte 108)."
        f" {CORRECT}",
    ),
    "a gzip with a wrong checksum": (
        lambda: gzip.compress(GPX)[:-8] + b"checksum",
        f"The checksum of the archive is wrong: its content may differ from the original. {AGAIN}",
    ),
    "a gzip with other data behind it": (
        lambda: gzip.compress(GPX) + b"other data",
        f"Other data follows the end of the archive. {AGAIN}",
    ),
    "millions of names": (
        lambda: GPX.replace(b"</trkseg>", b"".join(b"<a%d/>" % n for n in range(2_000_000))),
        "The elements and attributes have more than 2,000 different names, or very long ones"
        " (line 1, byte ",
    ),
}
"""Name → file, the message of an import with one point or two that needs a decision."""

GOOD: dict[str, tuple[Callable[[], bytes], str]] = {
    "paths that lead elsewhere": (
        lambda: zipped(("../../../tailrace-was-here.gpx", GPX), ("/tailrace-was-here.gpx", b"x")),
        "File format: GPX track.",
    ),
    "two formats at once": (
        lambda: b'{"type": "FeatureCollection", "features": [], ' + RECORDS[1:],
        "File format: Google Takeout, Records.json.",
    ),
}
"""Name → file of one point, what its page says."""
ALL = FAILED | PART | GOOD


@cache
def file_of(name: str) -> bytes:
    return ALL[name][0]()


@pytest.fixture
def ann() -> User:
    return person("ann")


@pytest.fixture
def imported(ann: User, run_imports: Callable[[], int]) -> Callable[[str], list[Import]]:
    """Return `imported(name)`: the imports of a file by the page and by the API, staged."""

    def upload(name: str) -> list[Import]:
        file = file_of(name)
        began = time.process_time()
        page = Visitor(ann).post("/timeline/imports", {"file": SimpleUploadedFile(name, file)})
        assert page.status_code == 302, page.content
        answer = send(Program(ann), file, name=name)
        assert answer.status_code == 202, answer.content
        run_imports()
        assert time.process_time() - began < 2 * SECONDS
        return list(Import.objects.order_by("pk"))

    return upload


def shown(ann: User, row: Import) -> tuple[str, str]:
    """The text of the import's page, and the error that the API gives."""
    page = Visitor(ann).text(f"/timeline/imports/{row.pk}")
    return page, Program(ann).get(f"/imports/{row.pk}").json()["error"]


@pytest.mark.parametrize("name", FAILED)
def test_a_file_without_a_point_that_can_be_used(
    name: str, ann: User, imported: Callable[[str], list[Import]], import_folder: Path
) -> None:
    for row in imported(name):
        assert row.state == "failed"
        page, error = shown(ann, row)
        assert error == FAILED[name][1]
        assert name in page, "the page names the file"
        assert error in page
        assert "No points of this file could be used." in page
    assert (staged_tables(), stored(ann), files_in(import_folder)) == ([], [], [])


@pytest.mark.parametrize("name", PART)
def test_a_file_whose_beginning_is_good(
    name: str, ann: User, imported: Callable, import_folder: Path, run_imports: Callable[[], int]
) -> None:
    for row in imported(name):
        assert row.state == "needs_decision"
        page, error = shown(ann, row)
        assert error.startswith(PART[name][1])
        assert error in page
        assert "Promote this part, or cancel the import." in page
        assert Program(ann).post(f"/imports/{row.pk}/cancel").status_code == 200
    run_imports()
    assert (staged_tables(), stored(ann), files_in(import_folder)) == ([], [], [])


@pytest.mark.parametrize("by", ["page", "API"])
@pytest.mark.parametrize("name", ["an ampersand", "a gzip with a wrong checksum"])
def test_what_stands_before_the_error_is_taken_if_the_person_says_so(
    name: str, by: str, ann: User, run_imports: Callable[[], int]
) -> None:
    row = upload(ann, file_of(name))
    run_imports()
    if by == "page":
        assert "Promote this part" in Visitor(ann).text(f"/timeline/imports/{row.pk}")
        Visitor(ann).post(f"/timeline/imports/{row.pk}/promote")
    else:
        assert Program(ann).post(f"/imports/{row.pk}/promote").status_code == 200
    run_imports()
    row = now(row)
    assert (row.state, row.inserted, len(stored(ann))) == ("completed", 1, 1)
    assert PART[name][1] in row.error, "the reason stays in the history"


@pytest.mark.parametrize("name", GOOD)
def test_a_file_that_looks_dangerous_and_is_not(
    name: str, ann: User, imported: Callable, import_folder: Path
) -> None:
    for row in imported(name):
        page, error = shown(ann, row)
        assert (row.state, row.staged, row.rejected, error) == ("grace", 1, 0, "")
        assert GOOD[name][1] in page
    names = {path.name for path in files_in(import_folder)}
    assert names == {now(row).storage_key.rpartition("/")[2] for row in Import.objects.all()}


def test_an_empty_file_is_refused_at_once(ann: User, import_folder: Path) -> None:
    answer = send(Program(ann), b"")
    assert (answer.status_code, answer.json()["detail"]) == (422, "file: the file is empty")
    page = Visitor(ann).post("/timeline/imports", {"file": SimpleUploadedFile("a.gpx", b"")})
    assert page.status_code == 422
    assert "The submitted file is empty." in page.content.decode()
    assert (Import.objects.count(), files_in(import_folder)) == (0, [])


MEASURED = """
import sys
from tailrace.domains.timeline.imports.files.reading import read_points
from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tests.timeline.formats.reading import peak_megabytes
before = peak_megabytes()
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        try:
            for batch in read_points(file, Tally(latest=2**60)):
                pass
        except FileError:
            pass
print(peak_megabytes() - before)
"""


def paths_of(names: Iterable[str], folder: Path) -> list[str]:
    paths = []
    for number, name in enumerate(names):
        path = folder / str(number)
        path.write_bytes(file_of(name))
        paths.append(str(path))
    return paths


def test_reading_all_of_them_takes_less_than_100_megabytes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEASURED, *paths_of(ALL, tmp_path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert float(output) < 100
