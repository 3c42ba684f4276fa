"""Errors that end the reading of a file. The messages are written for its owner."""

import re
from typing import ClassVar


class FileError(Exception):
    """The file cannot be read any further. The points before the error were yielded and are valid.

    `line` and `offset` (byte in the unpacked file) are the position of the error, or None if it is
    not known; `member` is the file in the archive, or "".
    """

    advice: ClassVar[str] = ""
    """A sentence that tells the owner how to fix the error."""

    def __init__(
        self, message: str, *, line: int | None = None, offset: int | None = None, member: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.offset = offset
        self.member = member

    def __str__(self) -> str:
        position = [
            f"in {self.member}" if self.member else "",
            f"line {self.line:,}" if self.line is not None else "",
            f"byte {self.offset:,}" if self.offset is not None else "",
        ]
        shown = ", ".join(part for part in position if part)
        return f"{self.message} ({shown})" if shown else self.message

    def with_advice(self) -> str:
        """Return the message with the position of the error and the advice."""
        text = str(self)
        return f"{text}{'' if text.endswith(('.', '?')) else '.'} {self.advice}".rstrip()


_PLACE = re.compile(r"[(,] ?((?:line [\d,]+)?(?:, )?(?:byte [\d,]+)?)\)(?=\.|$)")


def error_position(error: str) -> str:
    """Return the position in an error message, such as `line 7, byte 1,204`, or "".

    Unlike the rest of the message, it does not quote the file.
    """
    positions: list[str] = _PLACE.findall(error)  # the name of an archive's file may match, too
    return positions[-1] if positions else ""


class UnknownFormat(FileError):
    """No format recognises the content, so there are no points to promote."""

    advice = "GPX, GeoJSON, Google Takeout or Timeline and OwnTracks files can be imported."


class Malformed(FileError):
    """The file is cut or not well-formed. The owner decides whether to promote the points before
    the error."""

    advice = "Export or download the file again."


class NotXml(Malformed):
    """The file breaks a rule of XML at a place that its owner can find and correct."""

    advice = "Correct this line in a text editor, or export the file again."


class LimitExceeded(FileError):
    """The file exceeds a limit of size, depth or length, or declares XML entities. It may be an
    attack, or no location history."""

    advice = "Export the data again in smaller files, or as GPX or GeoJSON."
