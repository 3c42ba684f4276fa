"""What is no photo: a clear answer, and nothing half stored."""

import struct
import zlib
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from PIL.TiffImagePlugin import IFDRational

from domains.photos import intake, shelf
from domains.photos.models import Photo, Upload
from events import clock as events_clock
from events.models import Event
from tests.photos.scene import BERLIN, degrees, exif, noon, picture, zero_denominators
from tests.photos.test_api import send, words
from tests.subscriptions.api.kit import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return program("ann")


@pytest.fixture(autouse=True)
def _nothing_is_left(shelf_folder: Path, db: None) -> object:
    yield
    assert not Photo.objects.exists()
    assert not Upload.objects.exists()
    assert not Event.objects.filter(type="photos.uploaded").exists()
    assert [one for one in shelf_folder.rglob("*") if one.is_file()] == []


def fault(answer, field: str) -> str:
    """Return what the problem says of the field."""
    told = problem(answer, 422, "invalid")
    found = [one["detail"] for one in told["errors"] if one.get("pointer") == f"#/{field}"]
    assert found, told
    return found[0]


def test_a_renamed_text_file(ann: Program) -> None:
    told = fault(send(ann, b"Dear diary, " * 100, name="holiday.jpg"), "file")
    assert told == "it is no picture that is known here; send JPEG, PNG or WebP"


@pytest.mark.parametrize(
    "file",
    [
        b"", b"\xff\xd8\xff", b"GIF89a" + bytes(100), b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    ],
)  # fmt: skip
def test_what_is_no_picture_here(ann: Program, file: bytes) -> None:
    assert fault(send(ann, file), "file")


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_a_picture_that_is_cut_off(ann: Program, form: str) -> None:
    whole = picture(exif(*BERLIN, noon()), form=form, size=(900, 700))
    assert "broken" in fault(send(ann, whole[: len(whole) * 3 // 5]), "file")


def bomb(width: int, height: int) -> bytes:
    """Return a PNG of some kilobytes that would unpack to so many black pixels."""

    def chunk(name: bytes, body: bytes) -> bytes:
        checked = name + body
        return struct.pack(">I", len(body)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    line = bytes(1 + (width + 7) // 8)
    body = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    begin = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    return begin + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("width", "height"), [(9000, 9000), (20_000, 20_000)])
def test_a_picture_that_unpacks_to_too_much(ann: Program, width: int, height: int) -> None:
    file = bomb(width, height)
    assert len(file) < 1_000_000
    told = fault(send(ann, file, lat="1", lon="1", taken_at="2026-10-01T12:00:00Z"), "file")
    assert "64 million" in told


def test_a_text_that_unpacks_to_too_much(ann: Program) -> None:
    packed = b"Comment\0\0" + zlib.compress(bytes(200_000_000), 9)
    chunk = struct.pack(">I", len(packed)) + b"zTXt" + packed
    chunk += struct.pack(">I", zlib.crc32(b"zTXt" + packed))
    plain = picture(form="PNG")
    told = fault(send(ann, plain[:33] + chunk + plain[33:]), "file")
    assert "cannot be read" in told


def test_a_picture_of_50_megabytes(ann: Program) -> None:
    """It is refused by what it announces: none of it is read."""

    class Unread(BytesIO):
        def read(self, *args: int) -> bytes:
            raise AssertionError("somebody read it")

    answer = ann.client.generic(
        "POST", "/api/photos", CONTENT_TYPE="multipart/form-data; boundary=x",
        CONTENT_LENGTH="50000000", **{"wsgi.input": Unread()},
    )  # fmt: skip
    told = problem(answer, 413)
    assert "50000000" in told["detail"]
    assert "25065536" in told["detail"]
    assert "PHOTOS_MAX_MEGABYTES" in told["detail"]


def test_nobody_reads_it_for_a_csrf_token_either(ann: Program) -> None:
    class Unread(BytesIO):
        def read(self, *args: int) -> bytes:
            raise AssertionError("somebody read it")

    client = Client(enforce_csrf_checks=True)
    client.force_login(ann.user)
    for path in ("/api/photos", "/photos/upload"):
        answer = client.generic(
            "POST", path, CONTENT_TYPE="multipart/form-data; boundary=x",
            CONTENT_LENGTH="50000000", **{"wsgi.input": Unread()},
        )  # fmt: skip
        assert answer.status_code == 413, path


def test_one_that_is_just_too_large(ann: Program, settings) -> None:
    settings.PHOTOS_MAX_MEGABYTES = 1
    told = problem(send(ann, picture(exif(*BERLIN, noon())) + bytes(1_000_000)), 413)
    assert told["errors"][0]["pointer"] == "#/file"
    assert told["detail"] == (
        "file: has 1.0 MB, and at most 1.0 MB are taken (PHOTOS_MAX_MEGABYTES)"
    )


def test_a_picture_that_says_nothing(ann: Program) -> None:
    told = problem(send(ann, picture()), 422, "invalid")
    assert [one["pointer"] for one in told["errors"]] == ["#/lat", "#/lon", "#/taken_at"]
    assert told["errors"][0]["detail"] == (
        "the picture does not say it, so send it as lat: degrees, north above 0, -90 to 90"
    )


NAN = (IFDRational(0, 0), IFDRational(0, 0), IFDRational(0, 0))


@pytest.mark.parametrize(
    ("field", "said", "words"),
    [
        ("lat", {"lat": 200}, "200°, and 90 is the most there is"),
        ("lon", {"lon": -181}, "181°, and 180 is the most there is"),
        ("lat", {"lat": NAN}, "which are no degrees"),
        ("lon", {"lon": NAN}, "which are no degrees"),
        ("taken_at", {"taken_at": "soon after lunch"}, "which is no time"),
        ("taken_at", {"taken_at": "2026:13:45 27:00:00"}, "which is no time"),
        ("taken_at", {"taken_at": "1970:01:01 00:00:00"}, "1970-01-01T00:00:00"),
        ("taken_at", {"taken_at": "2999:01:01 00:00:00"}, "still to come"),
    ],
)
def test_an_exif_that_cannot_be(ann: Program, field: str, said: dict, words: str) -> None:
    whole = {"lat": BERLIN[0], "lon": BERLIN[1], "taken_at": noon(), **said}
    told = fault(send(ann, picture(exif(**whole))), field)
    assert words in told
    assert f"send the right one as {field}" in told


def test_a_latitude_with_a_denominator_of_zero(ann: Program) -> None:
    assert "which are no degrees" in fault(send(ann, zero_denominators()), "lat")


def test_minutes_below_zero_are_no_degrees(ann: Program) -> None:
    said = exif(degrees(52.5), BERLIN[1], noon())
    said.get_ifd(0x8825)[2] = (IFDRational(52), IFDRational(1_000_000), IFDRational(0))
    assert "is the most there is" in fault(send(ann, picture(said)), "lat")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lat", "north"), ("lat", "91"), ("lat", "nan"), ("lon", "-inf"), ("lon", "180.5"),
        ("taken_at", "yesterday"), ("taken_at", "2026-10-01T12:00:00"), ("taken_at", "1790000000"),
        ("taken_at", "0001-01-01T00:00:00+14:00"), ("taken_at", "1970-01-01T00:00:00Z"),
        ("taken_at", "2999-01-01T00:00:00Z"), ("caption", "x" * 2001), ("place", "here"),
        ("storage_key", "bucket/1.jpg"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be(ann: Program, field: str, value: str) -> None:
    assert fault(send(ann, picture(exif(*BERLIN, noon())), **{field: value}), field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lat", "52.5"), ("lat", True), ("lat", 91), ("lon", None), ("taken_at", 1790000000),
        ("taken_at", "2026-10-01"), ("storage_key", ""), ("storage_key", "x" * 501),
        ("storage_key", "uploads/../../etc/passwd"), ("caption", 7), ("file", "x"),
    ],
)  # fmt: skip
def test_words_that_cannot_be(ann: Program, field: str, value: object) -> None:
    assert fault(ann.post("/photos", words(**{field: value})), field)


def test_what_is_missing_is_named(ann: Program) -> None:
    told = problem(ann.post("/photos", {}), 422, "invalid")
    assert {one["pointer"] for one in told["errors"]} == {
        "#/storage_key", "#/lat", "#/lon", "#/taken_at",
    }  # fmt: skip
    assert "send one picture as `file`" in fault(send(ann, None, lat="1"), "file")


def test_bodies_that_are_none(ann: Program) -> None:
    problem(ann.post("/photos", b"[1"), 400)
    problem(ann.post("/photos", b"[1]"), 422, "invalid")
    problem(ann.post("/photos", b"x", content_type="image/jpeg"), 415)
    problem(ann.post("/photos", b"x", content_type="multipart/form-data"), 400)
    problem(ann.post("/photos", b"x" * 2_000_000), 413)
    cut = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n\xff\xd8'
    form = "multipart/form-data; boundary=x"
    assert fault(ann.post("/photos", cut, content_type=form), "file")
    two = {"file": [SimpleUploadedFile(name, picture()) for name in "ab"]}
    assert "there are 2 files" in fault(ann.client.post("/api/photos", two), "file")
    nul = send(ann, picture(exif(*BERLIN, noon())), caption="a\0b")
    problem(nul, 422, "invalid")


def test_a_connection_that_breaks_off(ann: Program) -> None:
    class Broken(BytesIO):
        def read(self, *args: int) -> bytes:
            raise OSError("the other side went away")

    answer = ann.client.generic(
        "POST", "/api/photos", CONTENT_TYPE="multipart/form-data; boundary=x",
        CONTENT_LENGTH="5000", **{"wsgi.input": Broken()},
    )  # fmt: skip
    problem(answer, 400)


def test_a_transaction_that_fails_leaves_no_file(ann: Program) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_photo() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'no photos today'; END $$;"
            "CREATE TRIGGER refuse_photo BEFORE INSERT ON photos_photo"
            " FOR EACH ROW EXECUTE FUNCTION refuse_photo()"
        )
    problem(send(ann, picture(exif(*BERLIN, noon()))), 500)


def test_a_folder_that_takes_nothing(ann: Program, shelf_folder: Path) -> None:
    shelf_folder.parent.mkdir(exist_ok=True)
    shelf_folder.write_text("a file stands where the folder should be")
    answer = send(ann, picture(exif(*BERLIN, noon())))
    shelf_folder.unlink()
    told = problem(answer, 503)
    assert told["detail"].startswith("pictures cannot be kept now: ")
    assert answer["Retry-After"] == "60"


def test_what_a_dead_process_left_is_removed(ann: Program, shelf_folder: Path, clock) -> None:
    """Files are there and their upload, and no photo."""
    key = shelf.new_key(".jpg")
    shelf.put(key, BytesIO(picture()), picture())
    Upload.objects.create(user=ann.user, storage_key=key, started_at=events_clock.now())
    assert intake.left_behind(10) == []
    clock.step(timedelta(hours=1, seconds=1).total_seconds())
    found = intake.left_behind(10)
    assert len(found) == 1
    assert intake.clear(found) == 1
    assert intake.left_behind(10) == []
