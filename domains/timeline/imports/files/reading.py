"""Read the points of an upload in any format, plain or packed.

    tally = Tally(latest=…)
    for batch in read_points(file, tally):
        …

Memory use does not depend on the file's size. Errors in the file raise `FileError`; the points that
were yielded before are valid.
"""

import codecs
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import BinaryIO

from tailrace.domains.timeline.imports.files import formats
from tailrace.domains.timeline.imports.files.formats.base import HEAD, Format
from tailrace.domains.timeline.imports.files.parsing.file_errors import (
    FileError,
    LimitExceeded,
    UnknownFormat,
)
from tailrace.domains.timeline.imports.files.parsing.readable import (
    Readable,
    Rewound,
    utf_16_of,
)
from tailrace.domains.timeline.imports.files.parsing.tally import KEPT, Tally
from tailrace.domains.timeline.imports.files.parsing.unpack import (
    GZIP,
    ZIP,
    Limits,
    Member,
    members,
)
from tailrace.domains.timeline.points.points import Point
from tailrace.environment.discovery import subclasses

_OUT_OF_MEMORY = "Reading the file takes more memory than an import may use"


@cache
def all_formats() -> tuple[Format, ...]:
    """Return an instance of each format in `formats`, in the order in which they are tried."""
    for module in pkgutil.iter_modules(formats.__path__, f"{formats.__name__}."):
        importlib.import_module(module.name)
    classes = subclasses(Format)  # type: ignore[type-abstract]
    instances = [cls() for cls in classes if hasattr(cls, "name")]
    return tuple(sorted(instances, key=lambda file_format: file_format.rank))


def labels_of(names: str) -> str:
    """Return the labels of the format names in `Import.formats`, such as "GPX track; GeoJSON"."""
    labels = {file_format.name: file_format.label for file_format in all_formats()}
    return "; ".join(labels.get(name, name) for name in names.split(", "))


def detect(head: bytes) -> Format:
    """Return the format of a file by its first bytes (`formats.base.HEAD`), never by its name.

    Raises UnknownFormat with a message that names other kinds of files, such as a web page.
    """
    if utf_16 := utf_16_of(head):
        head = head.decode(utf_16, "ignore").encode()
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    for file_format in all_formats():
        if file_format.recognises(text):
            return file_format
    raise UnknownFormat(_unknown_format_message(text))


def read_points(
    file: BinaryIO, tally: Tally, limits: Limits | None = None
) -> Iterator[list[Point]]:
    """Yield the points of an upload in batches. The upload is a plain file, a gzip file, or a zip
    archive of files.

    `file` must be open for reading at its beginning, and seekable if it is a zip archive.
    `file.tell()` is the number of bytes read so far. Raises FileError with the position of the
    error.
    """
    recognised = False
    for member in members(file, limits or Limits()):
        tally.member = member.name
        try:
            yield from _read_member(member, tally)
            recognised = True
        except UnknownFormat:
            if not member.name:
                raise
            if len(tally.skipped_members) < KEPT:
                tally.skipped_members.append(member.name)
        except FileError as error:
            error.member = member.name
            raise
        except MemoryError as error:
            raise LimitExceeded(_OUT_OF_MEMORY, member=member.name) from error
    if not recognised:
        raise UnknownFormat(
            "No file in this archive is a location history that we can read. Nested archives are"
            " not unpacked."
        )


def _read_member(member: Member, tally: Tally) -> Iterator[list[Point]]:
    head = _read_fully(member.file, HEAD)
    file_format = detect(head)
    if not (file_format.has_tags or tally.tag_filter.wants("")):
        return
    for batch in file_format.read(Rewound(head, member.file), tally):
        if batch:
            tally.accepted += len(batch)
            tally.formats[file_format.name] += len(batch)
            if not file_format.has_tags:
                tally.tags[""] += len(batch)
            yield batch


def _read_fully(file: Readable, size: int) -> bytes:
    pieces = []
    while size and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _unknown_format_message(head: bytes) -> str:
    lowered = head[:1000].lower()
    if not head.strip(b"\0"):
        return "The file is empty."
    if lowered.startswith(b"<") and (b"<html" in lowered or b"<!doctype html" in lowered):
        return "This is a web page, not a location history: was the download behind a login?"
    if b"<kml" in lowered or b"<tcx" in lowered or b"<trainingcenterdatabase" in lowered:
        return "KML and TCX files are not supported: export the track as GPX or GeoJSON."
    if head.startswith((GZIP, *ZIP)):
        return "This is an archive within an archive, which is not unpacked: unpack it first."
    if b"\0" in head:
        return "This is a binary file, not a location history that we can read."
    if head.startswith((b"{", b"[")):
        return "This JSON file is not a location history that we know."
    return "This file is not a location history that we know."
