"""GPX 1.0, 1.1 and files that resemble GPX.

Elements are recognised by their local names, so missing and undeclared namespaces are accepted.
Points of tracks and routes are read. Waypoints are ignored, because they are not a history.
"""

import codecs
import re
from collections.abc import Iterator
from itertools import chain
from xml.parsers import expat

from tailrace.domains.timeline.imports.files.formats.base import BATCH, Format
from tailrace.domains.timeline.imports.files.parsing.columns import UNUSUAL
from tailrace.domains.timeline.imports.files.parsing.file_errors import (
    FileError,
    LimitExceeded,
    Malformed,
    NotXml,
)
from tailrace.domains.timeline.imports.files.parsing.gpx_text import GpxText, points_of_values
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import (
    Measures,
    checked_measures,
    e7,
    is_plain,
    iso_time,
    why_unreadable,
)
from tailrace.domains.timeline.points.points import Point, fault

CHUNK = 65_536
MAX_DEPTH = 100
MAX_TOKEN = 1_000_000
"""Maximum bytes of one tag, comment or text."""
_HEAD = re.compile(rb"<(?:[\w.-]+:)?gpx[\s>]")
_POINTS = {"trkpt", "rtept"}
_FIELDS = {"ele", "time", "speed", "course", "accuracy"}
_OF_POINT = {"ele", "time"}
"""Fields that must be directly within the point. In its extensions they have other meanings."""
MAX_NAMES = 2_000
MAX_NAMES_LENGTH = 100_000
"""Maximum number of different names of elements and attributes, and of their characters together.
Expat keeps each name until the end of the file. Files have a few dozen names."""
_END = b"</trkpt>"
_CUT = (3, 5, 6, 20)
"""Error codes of expat for a file that ends too early: no element, within a token, …"""
_INVALID_TOKEN, _OUT_OF_MEMORY = 4, 1
_AFTER_ROOT = 9
_ERRORS = {
    7: "an end tag does not match its start tag",
    8: "an attribute occurs twice in a tag",
    _AFTER_ROOT: "something follows the end of the XML",
    11: "the name after “&” is not known in XML",
    14: "the number after “&#” is no character",
}
"""Descriptions of errors by expat's code. Expat's own texts of these are hard to understand."""
_AFTER_END = re.compile(rb"</(?:[\w.-]+:)?gpx[ \t\r\n]*>[^<]*\Z")
_AMPERSAND = re.compile(rb"&[#\w]{0,40}\Z")


class Gpx(Format):
    """Tracks of GPS receivers and sports applications. Accuracy is read only from elements called
    `accuracy`; `hdop` is a factor, not metres."""

    name = "gpx"
    label = "GPX track"

    def recognises(self, head: bytes) -> bool:
        return _HEAD.search(head) is not None

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        parser = _Parser(tally)
        ended = False
        while not ended:
            try:
                try:
                    piece = file.read(CHUNK)
                except FileError:
                    parser.feed_rest()
                    raise
                ended = parser.feed(piece)
            except FileError:
                yield parser.points
                raise
            if len(parser.points) >= BATCH or ended:
                yield parser.points
                parser.points = []


_Element = tuple[dict[str, str], dict[str, str], int]
"""A point in the file: its attributes, the texts of its fields, and the byte where it ends."""


class _Parser:
    """Parses a GPX file that is fed in pieces, and collects its points."""

    def __init__(self, tally: Tally) -> None:
        self.points: list[Point] = []
        self._tally = tally
        self._text_points = GpxText(tally.latest)
        self._elements: list[_Element] = []
        """The points that ended in the current piece."""
        self._rest = b""
        """The bytes after the last point of the previous piece."""
        self._after_point = False
        """Whether the last bytes that expat parsed are the end of a point."""
        self._passed = self._passed_lines = 0
        """Numbers of bytes and line ends that bypassed expat."""
        self._fed = 0
        self._piece = b""
        self._lines = 0
        """Number of line ends before the piece."""
        self._text: list[str] = []
        self._expat = expat.ParserCreate()
        self._expat.buffer_text = True
        self._expat.CharacterDataHandler = self._text.append
        self._expat.EntityDeclHandler = self._refuse_entity
        self._expat.AttlistDeclHandler = self._refuse_attributes
        self._known_names = 0
        self._handle_elements()

    def feed(self, piece: bytes) -> bool:
        """Parse the next piece of the file; b"" is the end of the file. Return whether it ended.

        If the text from one `</trkpt>` to another contains only plain points, a regular expression
        reads it, three times as fast as expat. That text bypasses expat, whose state does not
        change by whole elements.
        """
        if not self._fed and not self._passed:
            piece = self._without_space(piece)
        data = self._rest + piece
        end = data.rfind(_END) + len(_END) if piece else len(data)
        if end < len(_END):
            end = len(data)
        whole, self._rest = data[:end], data[end:]
        self._lines += self._piece.count(b"\n")
        self._piece = whole
        points = self._plain_points(whole) if self._after_point and piece else None
        if points is None:
            self._parse(whole, not piece)
        else:
            self.points += points
            self._passed += len(whole)
            self._passed_lines += whole.count(b"\n")
        return not piece

    def feed_rest(self) -> None:
        """Parse the bytes after the last point of the previous piece, because the next piece cannot
        be read."""
        rest, self._rest = self._rest, b""
        self._lines += self._piece.count(b"\n")
        self._piece = rest
        self._parse(rest, False)

    def _without_space(self, piece: bytes) -> bytes:
        """Return the first piece of a file without the white space before the XML declaration,
        which some programs write though XML does not allow it."""
        text = piece.removeprefix(codecs.BOM_UTF8)
        stripped = text.lstrip(b" \t\r\n")
        if len(stripped) == len(text):
            return piece
        self._passed = len(piece) - len(stripped)
        self._lines = self._passed_lines = piece[: self._passed].count(b"\n")
        return stripped

    def _plain_points(self, text: bytes) -> list[Point] | None:
        """Return the points of a text that contains only plain points; otherwise None."""
        stripped = text.strip(b" \t\r\n")
        if not stripped.isascii():
            return None
        try:
            return self._text_points.read(stripped.decode("ascii"))
        except UNUSUAL:
            return None

    def _parse(self, piece: bytes, final: bool) -> None:
        self._fed += len(piece)
        try:
            self._expat.Parse(piece, final)
        except expat.ExpatError as error:
            raise self._malformed(error) from error
        finally:
            last = self._elements[-1][2] if self._elements else 0
            self._after_point = last + len(_END) == self._fed
            self._convert()
        self._check_names()
        if self._fed - self._expat.CurrentByteIndex > MAX_TOKEN:
            raise self._error("A tag or comment is longer than 1 MB")
        if sum(map(len, self._text)) > MAX_TOKEN:
            raise self._error("A text is longer than 1 MB")

    def _check_names(self) -> None:
        """Raise LimitExceeded if the file has too many different names."""
        names = self._expat.intern
        if len(names) == self._known_names:
            return
        self._known_names = len(names)
        if len(names) > MAX_NAMES or sum(map(len, names)) > MAX_NAMES_LENGTH:
            raise self._error(
                f"The elements and attributes have more than {MAX_NAMES:,} different names, or very"
                " long ones"
            )

    def _handle_elements(self) -> None:
        """Set expat's handlers. They are called four times per point, so they use local variables,
        which are faster than attributes."""
        depth = depth_of_point = 0
        attributes: dict[str, str] = {}
        fields = outside_points = dict.fromkeys(_FIELDS, "")
        add_element = self._elements.append
        text, clear_text = self._text, self._text.clear
        names: dict[str, str | None] = dict.fromkeys(_POINTS, "")
        """By element name: the local name for a field, "" for a point, None for other elements."""
        names.update({name: name for name in _FIELDS})
        parser = self._expat

        def start(name: str, attributes_of_element: dict[str, str]) -> None:
            nonlocal depth, depth_of_point, attributes, fields
            depth += 1
            clear_text()
            if depth > MAX_DEPTH:
                raise self._error("The elements are nested too deep")
            if name not in names:
                local = name.rpartition(":")[2]
                names[name] = "" if local in _POINTS else local if local in _FIELDS else None
            if names[name] == "":
                attributes = attributes_of_element
                fields = {}
                depth_of_point = depth

        def end(name: str) -> None:
            nonlocal depth, fields
            depth -= 1
            field = names[name]
            if field:
                if field not in fields and (depth == depth_of_point or field not in _OF_POINT):
                    fields[field] = text[0] if len(text) == 1 else "".join(text)
            elif field is not None:
                add_element((attributes, fields, parser.CurrentByteIndex))
                fields = outside_points
            clear_text()

        self._expat.StartElementHandler = start
        self._expat.EndElementHandler = end

    def _convert(self) -> None:
        """Convert the elements of this piece to points: all at once if they are simple, which is
        twice as fast, otherwise one by one."""
        try:
            self.points += _points_of_elements(self._elements, self._tally.latest)
        except UNUSUAL:
            for element in self._elements:
                self._add_point(*element)
        self._elements.clear()

    def _add_point(self, attributes: dict[str, str], fields: dict[str, str], offset: int) -> None:
        time, degrees = fields.get("time"), (attributes.get("lat"), attributes.get("lon"))
        reason: str | None
        try:
            lat, lon = map(e7, degrees)
            recorded_at = iso_time(time)
        except ValueError:
            reason = why_unreadable(time and time.strip(), *degrees)
        else:
            reason = fault(recorded_at, lon, lat, self._tally.latest)
        if reason is None:
            self.points.append((recorded_at, lon, lat, *_measures(fields)))
        elif not self._tally.keeps_more:
            self._tally.reject(reason, "")
        else:
            values = list((attributes | fields).items())[:10]
            text = " ".join(f"{name}={value.strip()}" for name, value in values)
            self._tally.reject(reason, text, line=self._line(offset), offset=offset + self._passed)

    def _line(self, offset: int) -> int:
        """Return the number of the line that contains this byte of the piece."""
        before = offset - (self._fed - len(self._piece))
        return self._lines + self._piece.count(b"\n", 0, max(before, 0)) + 1

    def _refuse_entity(self, *_: object) -> None:
        raise self._error("The file declares entities, which is not allowed")

    def _refuse_attributes(self, *_: object) -> None:
        raise self._error("The file declares attributes, which is not allowed")

    def _malformed(self, error: expat.ExpatError) -> FileError:
        if error.code == _OUT_OF_MEMORY:
            raise MemoryError
        kind = Malformed if error.code in _CUT else NotXml
        return kind(
            self._what_is_wrong(error.code),
            line=error.lineno + self._passed_lines,
            offset=self._expat.ErrorByteIndex + self._passed,
        )

    def _what_is_wrong(self, code: int) -> str:
        if code in _CUT:
            return "The file ends in the middle"
        what = _ERRORS.get(code) or expat.ErrorString(code)
        if code == _INVALID_TOKEN:
            what = self._invalid_token() or what
        return f"This is not valid XML: {what}"

    def _invalid_token(self) -> str:
        """Return a description of the invalid text at the error; "" if the cause is a rare one."""
        position = self._expat.ErrorByteIndex - (self._fed - len(self._piece))
        if position < 0:  # the token began in an earlier piece
            return ""
        if _AFTER_END.search(self._piece, 0, position):
            return _ERRORS[_AFTER_ROOT]
        if _AMPERSAND.search(self._piece[max(0, position - 50) : position]):
            return "“&” must be written as “&amp;”"
        character = self._piece[position : position + 1]
        if character < b" ":
            return f"the control character U+{character.hex().zfill(4).upper()} is not allowed"
        return "the text is not in the encoding that the file claims" if character > b"~" else ""

    def _error(self, message: str) -> FileError:
        return LimitExceeded(
            message,
            line=self._expat.CurrentLineNumber + self._passed_lines,
            offset=self._expat.CurrentByteIndex + self._passed,
        )


def _points_of_elements(elements: list[_Element], latest: int) -> list[Point]:
    """Return the points of the elements. Raises one of UNUSUAL if one of them is not simple."""
    lats = [attributes["lat"] for attributes, _, _ in elements]
    lons = [attributes["lon"] for attributes, _, _ in elements]
    if not is_plain("".join(chain(lats, lons))):
        raise ValueError("not all coordinates are plain numbers")
    points = points_of_values(
        lats,
        lons,
        [fields.get("ele", "") for _, fields, _ in elements],
        [fields["time"] for _, fields, _ in elements],
        latest,
    )
    if max(len(fields) for _, fields, _ in elements) <= 2:
        return points
    return [
        (*point[:3], *_measures(fields))
        for point, (_, fields, _) in zip(points, elements, strict=True)
    ]


def _measures(fields: dict[str, str]) -> Measures:
    return checked_measures({**fields, "altitude": fields.get("ele")})
