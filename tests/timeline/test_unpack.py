import gzip
import zipfile
import zlib
from io import BytesIO

import pytest

from tailrace.domains.timeline.imports.files.parsing.file_errors import (
    FileError,
    LimitExceeded,
    Malformed,
    UnknownFormat,
)
from tailrace.domains.timeline.imports.files.parsing.unpack import MB, Limits
from tests.timeline.formats.reading import TRACKS, read

GPX = (TRACKS / "gpx/georust-wikipedia_example.gpx").read_bytes()
SEMANTIC = (TRACKS / "synthetic/2021_JANUARY-semantic.json").read_bytes()
SMALL = Limits(unpacked=10 * MB, ratio=50, free=1 * MB, members=5)


def zipped(method: int = zipfile.ZIP_DEFLATED, **files: bytes) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return packed.getvalue()


def test_gzip_is_unpacked_also_in_several_parts() -> None:
    half = len(GPX) // 2
    assert len(read(gzip.compress(GPX)).points) == 3
    assert len(read(gzip.compress(GPX[:half]) + gzip.compress(GPX[half:])).points) == 3


def test_each_file_of_an_archive_is_read_by_its_own_format() -> None:
    result = read(
        zipped(
            Takeout__2021_JANUARY=SEMANTIC,
            Takeout__readme=b"<html>Hello</html>",
            Takeout__empty=b"",
            track=GPX,
            packed=gzip.compress(GPX),
        )
    )
    assert dict(result.tally.formats) == {"google_semantic": 5, "gpx": 6}
    assert result.tally.skipped_members == ["Takeout/readme", "Takeout/empty"]
    assert result.tally.first_rejected[0].member == "Takeout/2021_JANUARY"


def test_a_broken_file_in_an_archive_is_named() -> None:
    result = read(zipped(first=GPX, second=GPX[:-200], third=GPX))
    assert isinstance(result.error, Malformed)
    assert result.error.member == "second"
    assert str(result.error).startswith("The file ends in the middle (in second, line ")
    assert len(result.points) >= 3


def test_an_archive_without_a_history_is_refused() -> None:
    for content in (zipped(readme=b"hello", picture=b"\xff\xd8\0"), zipped()):
        assert isinstance(read(content).error, UnknownFormat)


@pytest.mark.parametrize(
    "packed", [gzip.compress(GPX[:-100] + b"</gpx>" * 20), zipped(track=GPX)], ids=["gzip", "zip"]
)
@pytest.mark.parametrize("cut", [5, 20, -30, -9, -3])
def test_an_archive_that_is_cut_is_an_error(packed: bytes, cut: int) -> None:
    assert isinstance(read(packed[:cut]).error, Malformed)


def test_an_archive_with_wrong_bytes_is_an_error() -> None:
    for packed in (gzip.compress(GPX), zipped(track=GPX)):
        for place in range(0, len(packed), 7):
            broken = packed[:place] + bytes([packed[place] ^ 0xFF]) + packed[place + 1 :]
            error = read(broken).error  # an exception of another kind would be raised here
            assert error is None or isinstance(error, FileError)


def test_a_member_under_a_password_is_an_error() -> None:
    packed = bytearray(zipped(track=GPX))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        packed[packed.index(signature) + at] |= 1
    assert "password" in str(read(bytes(packed)).error)


def test_methods_that_take_much_memory_are_refused() -> None:
    assert "method" in str(read(zipped(zipfile.ZIP_LZMA, track=GPX)).error)


def bomb(size: int) -> bytes:
    return b'<gpx creator="' + b" " * 10 + b'">' + b"\n" * size + b"</gpx>"


@pytest.mark.parametrize("pack", [gzip.compress, lambda content: zipped(a=content)])
def test_a_bomb_is_refused(pack: object) -> None:
    assert callable(pack)
    result = read(pack(bomb(5 * MB)), SMALL)
    assert isinstance(result.error, LimitExceeded)
    assert "unpacks to more than 1 MB" in str(result.error)
    assert result.error.line is None or result.error.line > 1


def test_the_limits_hold_for_all_members_together_and_for_packed_ones_in_them() -> None:
    for content in (
        zipped(a=bomb(MB // 2), b=bomb(MB // 2), c=bomb(MB // 2)),
        zipped(a=gzip.compress(bomb(2 * MB))),
        gzip.compress(bomb(20 * MB), 0),
    ):
        assert isinstance(read(content, SMALL).error, LimitExceeded)


def test_too_many_members_are_refused() -> None:
    many = {f"f{n}": b"" for n in range(6)}
    assert "more than 5 files" in str(read(zipped(**many), SMALL).error)


def test_a_long_list_of_members_is_not_even_read() -> None:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(40):
            archive.writestr(f"{number:060000d}", b"")
    assert "too many files" in str(read(packed.getvalue()).error)


def test_an_archive_in_an_archive_is_passed_over() -> None:
    result = read(zipped(inner=zipped(track=GPX), track=GPX))
    assert len(result.points) == 3
    assert result.tally.skipped_members == ["inner"]


POINT = b'<trkpt lat="%d.5" lon="2"><time>2024-03-01T08:14:00Z</time></trkpt>\n'
TRACK = b"<gpx><trk><trkseg>%s</trkseg></trk></gpx>" % b"".join(
    POINT % (n % 90) for n in range(5000)
)
ITEM = b'{"latitudeE7": %d, "longitudeE7": 2, "timestamp": "2024-03-01T08:14:00Z"}'
HISTORY = b'{"locations": [%s]}' % b",\n".join(ITEM % n for n in range(5000))
CHECKSUM, OTHER_DATA = "The checksum of the archive is wrong", "Other data follows the end"


def changed(packed: bytes, position: int) -> bytes:
    """Return the bytes with another value at the position, counted from the end if negative."""
    position %= len(packed)
    return packed[:position] + bytes([packed[position] ^ 0xFF]) + packed[position + 1 :]


@pytest.mark.parametrize("content", [TRACK, HISTORY], ids=["gpx", "records"])
@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda packed: packed + b"more", OTHER_DATA),
        (lambda packed: packed + b"x" * 200_000, OTHER_DATA),
        (lambda packed: packed + b"\x1f", OTHER_DATA),
        (lambda packed: packed + bytes(1000) + b"more", OTHER_DATA),
        (lambda packed: changed(packed, -8), CHECKSUM),
        (lambda packed: changed(packed, -1), CHECKSUM),
        (lambda packed: packed[:-4], "The archive ends in the middle"),
        (lambda packed: packed[:-8], "The archive ends in the middle"),
    ],
)
def test_all_points_of_a_gzip_file_with_a_damaged_end_are_read(
    content: bytes, damage, sentence: str
) -> None:
    result = read(damage(gzip.compress(content)))
    assert len(result.points) == 5000
    assert isinstance(result.error, Malformed)
    assert str(result.error).startswith(sentence)


def test_zeros_behind_a_gzip_file_are_no_error() -> None:
    for zeros in (1, 5000, 200_000):
        result = read(gzip.compress(GPX) + bytes(zeros) + gzip.compress(b" ") + bytes(zeros))
        assert (len(result.points), result.error) == (3, None)


def test_the_parts_behind_a_wrong_checksum_are_read() -> None:
    half = len(TRACK) // 2
    first, second = gzip.compress(TRACK[:half]), gzip.compress(TRACK[half:])
    result = read(changed(first, -8) + second)
    assert len(result.points) == 5000
    assert str(result.error).startswith(CHECKSUM)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_all_files_of_a_zip_archive_with_a_wrong_checksum_are_read(method: int) -> None:
    packed = zipped(method, first=TRACK, second=HISTORY)
    checksum = zlib.crc32(TRACK).to_bytes(4, "little")
    assert packed.count(checksum) == 2, "before the file, and in the list of files"
    result = read(packed.replace(checksum, b"none"))
    assert len(result.points) == 10_000
    assert str(result.error).startswith(CHECKSUM)
    assert str(result.error).endswith("(in first)")


@pytest.mark.parametrize("kind", ["gzip", "zip"])
def test_all_that_stands_before_damaged_data_is_read(kind: str) -> None:
    packer = zlib.compressobj(wbits=31 if kind == "gzip" else -15)
    packed = packer.compress(TRACK[:-30]) + packer.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 100
    if kind == "zip":
        archive = zipped(zipfile.ZIP_STORED, track=packed)
        packed = archive.replace(b"PK\x03\x04\x14\0\0\0\0", b"PK\x03\x04\x14\0\0\0\x08")
        packed = packed.replace(
            b"PK\x01\x02\x14\x03\x14\0\0\0\0", b"PK\x01\x02\x14\x03\x14\0\0\0\x08"
        )
    result = read(packed)
    assert str(result.error).startswith("The archive is damaged (")
    assert len(result.points) == TRACK[:-30].count(b"</trkpt>")
