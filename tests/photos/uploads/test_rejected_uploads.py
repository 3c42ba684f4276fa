"""Rejected uploads: a clear error, and nothing is stored."""

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

from tailrace.db import clock as events_clock
from tailrace.domains.photos.invariants import UploadsEnd
from tailrace.domains.photos.models import Photo, Upload
from tailrace.domains.photos.uploads.pictures import storage
from tailrace.events.models import Event
from tests.photos.pictures import (
    BERLIN,
    degrees,
    exif,
    picture,
    recent,
    zero_denominator_picture,
)
from tests.photos.test_api import photo_json, send
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return program("ann")


@pytest.fixture(autouse=True)
def _nothing_is_left(storage_folder: Path, db: None) -> object:
    yield
    assert not Photo.objects.exists()
    assert not Upload.objects.exists()
    assert not Event.objects.filter(type="photos.uploaded").exists()
    assert [path for path in storage_folder.rglob("*") if path.is_file()] == []


def fault(answer, field: str) -> str:
    """Return the problem's detail for the field."""
    body = problem(answer, 422, "invalid")
    details = [error["detail"] for error in body["errors"] if error.get("pointer") == f"#/{field}"]
    assert details, body
    return details[0]


def test_a_text_file_named_jpg_is_rejected(ann: Program) -> None:
    reply = fault(send(ann, b"Dear diary, " * 100, name="holiday.jpg"), "file")
    assert reply == "not a supported picture; send JPEG, PNG or WebP"


@pytest.mark.parametrize(
    "file",
    [
        b"", b"\xff\xd8\xff", b"GIF89a" + bytes(100), b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    ],
)  # fmt: skip
def test_an_unsupported_file_is_rejected(ann: Program, file: bytes) -> None:
    assert fault(send(ann, file), "file")


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_a_truncated_picture_is_rejected(ann: Program, form: str) -> None:
    whole = picture(exif(*BERLIN, recent()), form=form, size=(900, 700))
    assert "damaged" in fault(send(ann, whole[: len(whole) * 3 // 5]), "file")


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
def test_a_decompression_bomb_is_rejected(ann: Program, width: int, height: int) -> None:
    file = bomb(width, height)
    assert len(file) < 1_000_000
    reply = fault(send(ann, file, lat="1", lon="1", taken_at="2026-10-01T12:00:00Z"), "file")
    assert "64 million" in reply


def test_a_huge_compressed_text_chunk_is_rejected(ann: Program) -> None:
    packed = b"Comment\0\0" + zlib.compress(bytes(200_000_000), 9)
    chunk = struct.pack(">I", len(packed)) + b"zTXt" + packed
    chunk += struct.pack(">I", zlib.crc32(b"zTXt" + packed))
    plain = picture(form="PNG")
    reply = fault(send(ann, plain[:33] + chunk + plain[33:]), "file")
    assert "cannot be read" in reply


def test_an_oversized_body_is_refused_unread(ann: Program) -> None:
    """It is refused by what it announces: none of it is read."""

    class Unread(BytesIO):
        def read(self, *args: int) -> bytes:
            raise AssertionError("somebody read it")

    answer = ann.client.generic(
        "POST", "/api/photos", CONTENT_TYPE="multipart/form-data; boundary=x",
        CONTENT_LENGTH="50000000", **{"wsgi.input": Unread()},
    )  # fmt: skip
    reply = problem(answer, 413)
    assert "50000000" in reply["detail"]
    assert "25065536" in reply["detail"]
    assert "PHOTOS_MAX_MEGABYTES" in reply["detail"]


def test_the_csrf_check_does_not_read_an_oversized_body(ann: Program) -> None:
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


def test_a_file_above_the_limit_is_rejected(ann: Program, settings) -> None:
    settings.PHOTOS_MAX_MEGABYTES = 1
    reply = problem(send(ann, picture(exif(*BERLIN, recent())) + bytes(1_000_000)), 413)
    assert reply["errors"][0]["pointer"] == "#/file"
    assert reply["detail"] == (
        "file: the upload has 1.0 MB; the limit is 1.0 MB (PHOTOS_MAX_MEGABYTES)"
    )


def test_a_picture_without_exif_needs_place_and_time(ann: Program) -> None:
    reply = problem(send(ann, picture()), 422, "invalid")
    assert [error["pointer"] for error in reply["errors"]] == ["#/lat", "#/lon", "#/taken_at"]
    assert reply["errors"][0]["detail"] == (
        "not in the picture's EXIF; send lat: degrees from -90 to 90, north is positive"
    )


NAN = (IFDRational(0, 0), IFDRational(0, 0), IFDRational(0, 0))


@pytest.mark.parametrize(
    ("field", "values", "words"),
    [
        ("lat", {"lat": 200}, "200°, and the limit is 90°"),
        ("lon", {"lon": -181}, "181°, and the limit is 180°"),
        ("lat", {"lat": NAN}, "which is not a number of degrees"),
        ("lon", {"lon": NAN}, "which is not a number of degrees"),
        ("taken_at", {"taken_at": "soon after lunch"}, "which is not a time"),
        ("taken_at", {"taken_at": "2026:13:45 27:00:00"}, "which is not a time"),
        ("taken_at", {"taken_at": "1970:01:01 00:00:00"}, "1970-01-01T00:00:00"),
        ("taken_at", {"taken_at": "2999:01:01 00:00:00"}, "in the future"),
    ],
)
def test_impossible_exif_values_are_rejected(
    ann: Program, field: str, values: dict, words: str
) -> None:
    whole = {"lat": BERLIN[0], "lon": BERLIN[1], "taken_at": recent(), **values}
    reply = fault(send(ann, picture(exif(**whole))), field)
    assert words in reply
    assert f"send {field}: " in reply


def test_a_zero_denominator_in_exif_is_rejected(ann: Program) -> None:
    assert "which is not a number of degrees" in fault(send(ann, zero_denominator_picture()), "lat")


def test_invalid_minutes_in_exif_are_rejected(ann: Program) -> None:
    values = exif(degrees(52.5), BERLIN[1], recent())
    values.get_ifd(0x8825)[2] = (IFDRational(52), IFDRational(1_000_000), IFDRational(0))
    assert "and the limit is 90°" in fault(send(ann, picture(values)), "lat")


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
def test_an_invalid_form_field_is_rejected(ann: Program, field: str, value: str) -> None:
    assert fault(send(ann, picture(exif(*BERLIN, recent())), **{field: value}), field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lat", "52.5"), ("lat", True), ("lat", 91), ("lon", None), ("taken_at", 1790000000),
        ("taken_at", "2026-10-01"), ("storage_key", ""), ("storage_key", "x" * 501),
        ("storage_key", "uploads/../../etc/passwd"), ("caption", 7), ("file", "x"),
    ],
)  # fmt: skip
def test_an_invalid_json_field_is_rejected(ann: Program, field: str, value: object) -> None:
    assert fault(ann.post("/photos", photo_json(**{field: value})), field)


def test_missing_fields_are_named(ann: Program) -> None:
    reply = problem(ann.post("/photos", {}), 422, "invalid")
    assert {error["pointer"] for error in reply["errors"]} == {
        "#/storage_key", "#/lat", "#/lon", "#/taken_at",
    }  # fmt: skip
    assert "send one file as `file`" in fault(send(ann, None, lat="1"), "file")


def test_invalid_bodies_are_rejected(ann: Program) -> None:
    problem(ann.post("/photos", b"[1"), 400)
    problem(ann.post("/photos", b"[1]"), 422, "invalid")
    problem(ann.post("/photos", b"x", content_type="image/jpeg"), 415)
    problem(ann.post("/photos", b"x", content_type="multipart/form-data"), 400)
    problem(ann.post("/photos", b"x" * 2_000_000), 413)
    cut = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n\xff\xd8'
    form = "multipart/form-data; boundary=x"
    assert fault(ann.post("/photos", cut, content_type=form), "file")
    two = {"file": [SimpleUploadedFile(name, picture()) for name in "ab"]}
    assert "has 2 files" in fault(ann.client.post("/api/photos", two), "file")
    nul = send(ann, picture(exif(*BERLIN, recent())), caption="a\0b")
    problem(nul, 422, "invalid")


def test_a_broken_connection_is_a_bad_request(ann: Program) -> None:
    class Broken(BytesIO):
        def read(self, *args: int) -> bytes:
            raise OSError("the other side went away")

    answer = ann.client.generic(
        "POST", "/api/photos", CONTENT_TYPE="multipart/form-data; boundary=x",
        CONTENT_LENGTH="5000", **{"wsgi.input": Broken()},
    )  # fmt: skip
    problem(answer, 400)


def test_a_failed_transaction_leaves_no_file(ann: Program) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse_photo() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'no photos today'; END $$;"
            "CREATE TRIGGER refuse_photo BEFORE INSERT ON tailrace_photos_photo"
            " FOR EACH ROW EXECUTE FUNCTION refuse_photo()"
        )
    problem(send(ann, picture(exif(*BERLIN, recent()))), 500)


def test_an_unwritable_folder_is_a_503(ann: Program, storage_folder: Path) -> None:
    storage_folder.parent.mkdir(exist_ok=True)
    storage_folder.write_text("a file stands where the folder should be")
    answer = send(ann, picture(exif(*BERLIN, recent())))
    storage_folder.unlink()
    reply = problem(answer, 503)
    assert reply["detail"].startswith("files cannot be stored now: ")
    assert answer["Retry-After"] == "60"


def test_files_of_a_dead_process_are_deleted(ann: Program, storage_folder: Path, clock) -> None:
    """Files are there and their upload, and no photo."""
    key = storage.new_key(".jpg")
    storage.save(key, BytesIO(picture()), picture())
    Upload.objects.create(user=ann.user, storage_key=key, started_at=events_clock.now())
    assert UploadsEnd().find() == []
    clock.step(timedelta(hours=1, seconds=1).total_seconds())
    uploads = UploadsEnd().find()
    assert len(uploads) == 1
    assert UploadsEnd().repair(uploads) == 1
    assert UploadsEnd().find() == []
