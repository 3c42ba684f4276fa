"""What is wrong with a file as a whole. The message is a sentence for its owner."""

import re
from typing import ClassVar


class FileError(Exception):
    """The file cannot be read any further. What came before the error was yielded and is good.

    `line` and `offset` (byte in the unpacked file) say where, as far as that is known; `member` is
    the file in the archive, or "".
    """

    advice: ClassVar[str] = ""
    """What the owner can do, a sentence."""

    def __init__(
        self, message: str, *, line: int | None = None, offset: int | None = None, member: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.offset = offset
        self.member = member

    def __str__(self) -> str:
        place = [
            f"in {self.member}" if self.member else "",
            f"line {self.line:,}" if self.line is not None else "",
            f"byte {self.offset:,}" if self.offset is not None else "",
        ]
        shown = ", ".join(part for part in place if part)
        return f"{self.message} ({shown})" if shown else self.message

    def with_advice(self) -> str:
        """Return what is wrong, where, and what the owner can do."""
        text = str(self)
        return f"{text}{'' if text.endswith(('.', '?')) else '.'} {self.advice}".rstrip()


_PLACE = re.compile(r"[(,] ?((?:line [\d,]+)?(?:, )?(?:byte [\d,]+)?)\)(?=\.|$)")


def place_in(error: str) -> str:
    """Return where in the file an error is, such as `line 7, byte 1,204`: the part of its text that
    says nothing of the content. Empty if it is not known."""
    places: list[str] = _PLACE.findall(error)  # a file of an archive may be called like one
    return places[-1] if places else ""


class UnknownFormat(FileError):
    """No format recognises the content: there is nothing to promote."""

    advice = "GPX, GeoJSON, Google Takeout or Timeline and OwnTracks files can be imported."


class Malformed(FileError):
    """The file is cut or not well-formed: the owner decides about what came before."""

    advice = "Export or download it again."


class LimitExceeded(FileError):
    """The file is larger, deeper or longer in one value than is accepted, or declares entities:
    an attack, or not a location history."""

    advice = "Export it again in smaller files, or as GPX or GeoJSON."
