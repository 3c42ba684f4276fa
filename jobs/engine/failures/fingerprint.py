"""Fingerprints of failures: the handler, the error class, the frame in our code where the error was
raised, and its message without values that differ from job to job."""

import hashlib
import re
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from types import TracebackType

from tailrace.environment.folders import BASE_DIR, PACKAGE_DIR

MESSAGE_LENGTH = 300
READ_LENGTH, FRAMES = 600, 200
"""The characters of a message, and the innermost frames of a traceback, that are read."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The values that all failures of one group share."""

    handler: str
    error_class: str
    frame: str
    """File and function, e.g. `shop/handlers.py in handle`; empty if it is not in our code."""
    message: str

    @property
    def id(self) -> int:
        """The id of the group: a number of 63 bits, the same in all processes."""
        text = "\0".join((self.handler, self.error_class, self.frame, self.message))
        digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
        return int.from_bytes(digest) >> 1


def fingerprint(handler: str, error_class: str, message: str, frame: str) -> Fingerprint:
    return Fingerprint(handler, error_class, frame, normalised(message))


_PATTERNS = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b[a-z][a-z+.-]{1,15}://[^\s'\"<>]{1,400}", "<address>"),
        (r"\b0x[0-9a-fA-F]{1,32}\b", "<address>"),
        (r"(?<![\w.+-])[\w.+-]{1,64}@[\w-][\w.-]{0,250}", "<address>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b", "<address>"),
        (r"(?<![\w:])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{1,4}(?![\w:])", "<address>"),
        (r"'[^']{0,300}'", "'…'"),
        (r'"[^"]{0,300}"', '"…"'),
        (r"«[^»]{0,300}»|“[^”]{0,300}”|‘[^’]{0,300}’|`[^`]{0,300}`", "“…”"),
        (r"\b(?=[0-9a-fA-F]{0,64}\d)(?=\d{0,64}[a-fA-F])[0-9a-fA-F]{7,64}\b", "<id>"),
        (r"\d+(?:[.,:]\d+)*", "<n>"),
    )
)
"""The order matters: later patterns would match parts of earlier ones."""


def normalised(message: str) -> str:
    """Return the message with its numbers, ids, quotes and addresses replaced, in one line."""
    text = " ".join(message[:READ_LENGTH].split())
    for pattern, name in _PATTERNS:
        text = pattern.sub(name, text)
    return text[:MESSAGE_LENGTH]


def frame_of(error: BaseException | None) -> str:
    """Return the innermost frame of our code in the exception's traceback, or an empty string."""
    frames = []
    step: TracebackType | None = error.__traceback__ if error is not None else None
    while step is not None:
        code = step.tb_frame.f_code
        frames.append((code.co_filename, code.co_name))
        step = step.tb_next
    return _innermost(frames)


_LINE = re.compile(r'^  File "([^"\n]{1,300})", line \d{1,9}, in ([^\s]{1,200})', re.MULTILINE)
_CHAINED = (
    "\nThe above exception was the direct cause of the following exception:\n",
    "\nDuring handling of the above exception, another exception occurred:\n",
)


def frame_in(traceback: str) -> str:
    """Return the innermost frame of our code in a traceback that was stored as text."""
    for separator in _CHAINED:
        traceback = traceback.rpartition(separator)[2]
    return _innermost([(path, name) for path, name in _LINE.findall(traceback)])


def _innermost(frames: list[tuple[str, str]]) -> str:
    """Return the last frame of an app's code, or else of the platform's code, or else empty."""
    own = [(name, function) for file, function in frames[-FRAMES:] if (name := _own_name(file))]
    app_frames = [frame for frame in own if not frame[0].startswith(_PLATFORM)]
    chosen = (app_frames or [frame for frame in own if not frame[0].startswith(_ENGINE)])[-1:]
    return "".join(f"{name} in {function}" for name, function in chosen)[:MESSAGE_LENGTH]


_ENGINE = ("jobs/engine/", "jobs/destinations/together")
_PLATFORM = ("db/", "net/", "events/", "jobs/")


@cache
def _own_name(file: str) -> str:
    """Return the file's path within the project; empty for Python's and packages' files."""
    path = PurePath(file)
    if _is_below(path, str(PACKAGE_DIR)):
        return path.relative_to(PACKAGE_DIR).as_posix()
    if file.startswith("<") or "site-packages" in path.parts or _is_below(path, _STANDARD):
        return ""
    if _is_below(path, str(BASE_DIR)):
        return path.relative_to(BASE_DIR).as_posix()
    return PurePath(*path.parts[-3:]).as_posix().lstrip("/")


_STANDARD = sysconfig.get_path("stdlib")


def _is_below(path: PurePath, folder: str) -> bool:
    return PurePath(folder) in path.parents
