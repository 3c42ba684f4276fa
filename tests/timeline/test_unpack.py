import gzip
import zipfile
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
