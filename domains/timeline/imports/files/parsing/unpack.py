"""Unpack gzip files and zip archives as streams.

A damaged archive is read as far as possible. The error is raised at the damage, or at the end of
the archive if all of the content could be read.
"""

import copy
import errno
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tailrace.domains.timeline.imports.files.parsing.file_errors import LimitExceeded, Malformed
from tailrace.domains.timeline.imports.files.parsing.readable import Readable, Rewound

GZIP = b"\x1f\x8b"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
MB = 1_000_000
_DIRECTORY_END = struct.Struct("<4s4H2LH")
_DIRECTORY_END_64 = b"PK\x06\x07"
_BROKEN = (zipfile.BadZipFile, zlib.error, OSError, struct.error)
_OF_CONTENT = (None, errno.EINVAL)
"""Errnos of an OSError that is caused by the archive (a negative position). Any other errno means
that the storage failed; a later attempt may succeed."""
_CHUNK = 65_536
_GZIPPED, _DEFLATED = 31, -15
"""zlib's `wbits` for the members of a gzip file, and of a zip archive."""
_WRONG_CHECKS = {"incorrect data check": 4, "incorrect length check": 0}
"""zlib's errors for a wrong checksum or length behind the content of a gzip member, and the number
of bytes from there to the end of the member."""
_WRONG_CHECKSUM = "The checksum of the archive is wrong: its content may differ from the original"
_MAX_DIRECTORY = 2 * MB
"""Maximum bytes of a zip archive's list of members. zipfile reads all of it, and takes ten times as
much memory."""


@dataclass(frozen=True)
class Limits:
    """The limits of unpacked archives. For other files, only the limits of uploads apply."""

    unpacked: int = 8_000 * MB
    """Maximum unpacked bytes of all members together."""
    ratio: int = 200
    """Maximum unpacked bytes per packed byte; GPX and Records.json have 10 to 30."""
    free: int = 64 * MB
    """Bytes that may be unpacked at any ratio."""
    members: int = 10_000


@dataclass(frozen=True)
class Member:
    name: str
    """Its path in the archive; "" if the upload is no zip archive."""
    file: Readable


def members(file: BinaryIO, limits: Limits) -> Iterator[Member]:
    """Yield the files of an upload. Read each file before getting the next one.

    Raises Malformed for a broken archive and LimitExceeded for one that is too large, also while a
    member is read.
    """
    start = file.read(4)
    file.seek(0)
    archive = _Archive(limits, _size(file))
    if start in ZIP:
        yield from _zip_members(file, archive)
    elif start.startswith(GZIP):
        yield Member("", _Unpacked(_gunzipped(file, archive, ""), archive))
    else:
        yield Member("", file)
    if archive.problem is not None:
        raise archive.problem


class _Archive:
    """Counts the unpacked bytes of an upload, and enforces their limit."""

    def __init__(self, limits: Limits, packed: int) -> None:
        self.limits = limits
        self.problem: Malformed | None = None
        """The first error of the archive that left its content readable."""
        self._bound = min(limits.unpacked, max(limits.free, packed * limits.ratio))
        self._used = 0

    def spend(self, size: int) -> None:
        self._used += size
        if self._used > self._bound:
            raise LimitExceeded(
                f"The archive unpacks to more than {self._bound // MB:,} MB, which is not accepted"
            )

    def note(self, problem: str, member: str) -> None:
        self.problem = self.problem or Malformed(problem, member=member)


class _Unpacked:
    """A stream of unpacked bytes. It raises LimitExceeded beyond the limit of the archive, and
    Malformed for a broken archive."""

    def __init__(self, pieces: Iterator[bytes], archive: _Archive) -> None:
        self._pieces = pieces
        self._archive = archive
        self._piece = b""
        self._offset = 0

    def read(self, size: int, /) -> bytes:
        if not self._piece:
            self._piece = self._next_piece()
        piece, self._piece = self._piece[:size], self._piece[size:]
        return piece

    def _next_piece(self) -> bytes:
        try:
            piece = next(filter(None, self._pieces), b"")
        except EOFError as error:
            raise Malformed("The archive ends in the middle", offset=self._offset) from error
        except _BROKEN as error:
            _check_storage(error)
            raise Malformed("The archive is damaged", offset=self._offset) from error
        self._offset += len(piece)
        self._archive.spend(len(piece))
        return piece


class _Packed:
    """A stream of packed bytes that can be looked at before they are used."""

    def __init__(self, file: Readable) -> None:
        self._file = file
        self.rest = b""
        """Bytes that were read and not used."""

    def fill(self, size: int = 1) -> bytes:
        """Read until `rest` has `size` bytes or the file ends; return `rest`."""
        while len(self.rest) < size and (piece := self._file.read(_CHUNK)):
            self.rest += piece
        return self.rest


def _inflated(packed: _Packed, wbits: int) -> Iterator[bytes]:
    """Yield the content of the deflated data that begins here, all of it up to an error. Raises
    EOFError or zlib.error."""
    stream = zlib.decompressobj(wbits)
    while not stream.eof:
        data, before = packed.fill(), stream.copy()
        try:
            piece = stream.decompress(data, _CHUNK)
        except zlib.error:  # zlib has returned nothing of this piece
            yield from _before_error(packed, before)
            raise
        packed.rest = stream.unused_data if stream.eof else stream.unconsumed_tail
        if not data and not piece:
            raise EOFError
        yield piece


def _before_error(packed: _Packed, stream: "zlib._Decompress") -> Iterator[bytes]:
    """Yield the content before the error, byte by byte of the packed data, which ends behind the
    byte with the error."""
    while packed.rest:
        byte, packed.rest = packed.rest[:1], packed.rest[1:]
        try:
            yield stream.decompress(byte)
        except zlib.error:
            return


def _gunzipped(file: Readable, archive: _Archive, name: str) -> Iterator[bytes]:
    """Yield the content of all members of a gzip file."""
    packed = _Packed(file)
    while packed.fill(2).startswith(GZIP):
        try:
            yield from _inflated(packed, _GZIPPED)
        except zlib.error as error:
            lengths = [size for text, size in _WRONG_CHECKS.items() if text in str(error)]
            if not lengths:
                raise
            archive.note(_WRONG_CHECKSUM, name)
            packed.rest = packed.fill(lengths[0])[lengths[0] :]
        while packed.fill() and not packed.rest.strip(b"\0"):  # zeros may fill a block
            packed.rest = b""
        packed.rest = packed.rest.lstrip(b"\0")
    if packed.rest:
        archive.note("Other data follows the end of the archive", name)


def _checked(pieces: Iterator[bytes], crc: int, archive: _Archive, name: str) -> Iterator[bytes]:
    """Yield the pieces of a zip member, and check their checksum at the end."""
    actual = 0
    for piece in pieces:
        actual = zlib.crc32(piece, actual)
        yield piece
    if actual != crc:
        archive.note(_WRONG_CHECKSUM, name)


def _zip_members(file: BinaryIO, archive: _Archive) -> Iterator[Member]:
    _check_directory(file)
    try:
        zipped = zipfile.ZipFile(file)
    except (*_BROKEN, ValueError, NotImplementedError) as error:
        _check_storage(error)
        raise Malformed("The archive is cut or damaged") from error
    listed = [info for info in zipped.infolist() if not info.is_dir()]
    if len(listed) > archive.limits.members:
        raise LimitExceeded(f"The archive has more than {archive.limits.members:,} files")
    for info in listed:
        name = info.filename[:200]
        if info.flag_bits & 1:
            raise Malformed("The archive is protected by a password", member=name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Malformed("The archive is packed by a method that we do not read", member=name)
        try:
            opened = zipped.open(_as_stored(info))
        except (*_BROKEN, NotImplementedError, ValueError) as error:
            _check_storage(error)
            raise Malformed("The archive is damaged", member=name) from error
        with opened:
            unpacked = _Unpacked(_unzipped(opened, info, archive, name), archive)
            start = unpacked.read(2)
            content: Readable = Rewound(start, unpacked)
            if start == GZIP:
                content = _Unpacked(_gunzipped(content, archive, name), archive)
            yield Member(name, content)


def _as_stored(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return the member as if it was not packed, so that zipfile returns its packed bytes."""
    stored = copy.copy(info)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, stored.compress_size
    del stored.CRC
    return stored


def _unzipped(
    packed: Readable, info: zipfile.ZipInfo, archive: _Archive, name: str
) -> Iterator[bytes]:
    if info.compress_type == zipfile.ZIP_DEFLATED:
        pieces = _inflated(_Packed(packed), _DEFLATED)
    else:
        pieces = iter(lambda: packed.read(_CHUNK), b"")
    return _checked(pieces, info.CRC, archive, name)


def _check_storage(error: Exception) -> None:
    """Raise the error, or its cause, again if the storage has failed."""
    for candidate in (error, error.__context__):  # zipfile wraps some errors of the storage
        if isinstance(candidate, OSError) and candidate.errno not in _OF_CONTENT:
            raise candidate


def _check_directory(file: BinaryIO) -> None:
    """Raise LimitExceeded if the list of members is too long, or Malformed if it is missing."""
    size = _size(file)
    file.seek(max(0, size - 65_557))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _DIRECTORY_END.size:
        raise Malformed("The archive ends in the middle")
    directory: int = _DIRECTORY_END.unpack_from(tail, at)[5]
    if tail[max(0, at - 20) : at].startswith(_DIRECTORY_END_64):
        (where,) = struct.unpack_from("<Q", tail, at - 12)
        if where <= size - 56:
            file.seek(where)
            (directory,) = struct.unpack_from("<Q", file.read(56), 40)
            file.seek(0)
    if directory > _MAX_DIRECTORY:
        raise LimitExceeded("The archive has too many files")


def _size(file: BinaryIO) -> int:
    here = file.tell()
    size = file.seek(0, 2)
    file.seek(here)
    return size
