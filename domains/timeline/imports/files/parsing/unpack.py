"""Unpack gzip files and zip archives as streams."""

import errno
import gzip
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from tailrace.domains.timeline.imports.files.parsing.file_errors import LimitExceeded, Malformed
from tailrace.domains.timeline.imports.files.parsing.readable import Readable, Rewound

GZIP = b"\x1f\x8b"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
MB = 1_000_000
_DIRECTORY_END = struct.Struct("<4s4H2LH")
_DIRECTORY_END_64 = b"PK\x06\x07"
_BROKEN = (zipfile.BadZipFile, zlib.error, OSError, struct.error)
_OF_CONTENT = (None, errno.EINVAL)
"""Errnos of an OSError that is caused by the archive (BadGzipFile, a negative position). Any other
errno means that the storage failed; a later attempt may succeed."""
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
    if start in ZIP:
        yield from _zip_members(file, _Budget(limits, _size(file)))
    elif start.startswith(GZIP):
        yield Member("", _gunzip(file, _Budget(limits, _size(file))))
    else:
        yield Member("", file)


class _Budget:
    """Counts the unpacked bytes of an upload, and enforces their limit."""

    def __init__(self, limits: Limits, packed: int) -> None:
        self.limits = limits
        self._bound = min(limits.unpacked, max(limits.free, packed * limits.ratio))
        self._used = 0

    def spend(self, size: int) -> None:
        self._used += size
        if self._used > self._bound:
            raise LimitExceeded(
                f"The archive unpacks to more than {self._bound // MB:,} MB, which is not accepted"
            )


class _Unpacking:
    """A stream of unpacked bytes. It raises LimitExceeded beyond the budget, and Malformed for a
    broken archive."""

    def __init__(self, read: Callable[[int], bytes], budget: _Budget) -> None:
        self._read = read
        self._budget = budget
        self._offset = 0

    def read(self, size: int, /) -> bytes:
        try:
            piece = self._read(size)
        except EOFError as error:
            raise Malformed("The archive ends in the middle", offset=self._offset) from error
        except _BROKEN as error:
            _check_storage(error)
            raise Malformed("The archive is damaged", offset=self._offset) from error
        self._offset += len(piece)
        self._budget.spend(len(piece))
        return piece


def _gunzip(file: Readable, budget: _Budget) -> Readable:
    # GzipFile only calls `read` of the file.
    return _Unpacking(gzip.GzipFile(fileobj=cast(BinaryIO, file), mode="rb").read, budget)


def _zip_members(file: BinaryIO, budget: _Budget) -> Iterator[Member]:
    _check_directory(file)
    try:
        archive = zipfile.ZipFile(file)
    except (*_BROKEN, ValueError, NotImplementedError) as error:
        _check_storage(error)
        raise Malformed("The archive is cut or damaged") from error
    listed = [info for info in archive.infolist() if not info.is_dir()]
    if len(listed) > budget.limits.members:
        raise LimitExceeded(f"The archive has more than {budget.limits.members:,} files")
    for info in listed:
        name = info.filename[:200]
        if info.flag_bits & 1:
            raise Malformed("The archive is protected by a password", member=name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Malformed("The archive is packed by a method that we do not read", member=name)
        try:
            opened = archive.open(info)
        except (*_BROKEN, NotImplementedError, ValueError) as error:
            _check_storage(error)
            raise Malformed("The archive is damaged", member=name) from error
        with opened:
            unpacked = _Unpacking(opened.read, budget)
            start = unpacked.read(2)
            content = Rewound(start, unpacked)
            yield Member(name, _gunzip(content, budget) if start == GZIP else content)


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
