"""Read an uploaded picture: check it, read its EXIF, and make a small copy.

The copy is always a JPEG, and contains no location, time or camera model. Each picture is decoded
in its own process (`decoder`), because decoding can take any amount of time and memory.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, tzinfo
from shutil import copyfileobj
from typing import IO

import structlog
from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile

from tailrace.domains.photos.uploads.pictures import decoder
from tailrace.domains.photos.uploads.pictures.decoder import InvalidPicture, Limits
from tailrace.domains.photos.uploads.pictures.exif import Exif
from tailrace.environment.folders import BASE_DIR

log = structlog.get_logger(__name__)

COPY_TYPE = "image/jpeg"
WAIT_SECONDS = 20
"""How long a decoder may wait for a CPU, in addition to its CPU time."""
_ENVIRONMENT = ("PYTHONPATH", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG")
"""The environment variables that a decoder gets: none with secrets."""


class DecoderBusy(Exception):
    """Too many pictures are being decoded now; a later attempt may succeed."""

    retry_seconds = 2


@dataclass(slots=True)
class Picture:
    """The data of a decoded picture."""

    suffix: str
    copy: bytes
    exif: Exif = field(default_factory=Exif)
    """Here `taken_at` is a datetime with a zone."""


class DecoderSlots:
    """Limits how many pictures this process decodes at the same time. Callers never wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: Counter[int] = Counter()

    @contextmanager
    def take(self, user: int) -> Iterator[None]:
        """Use a slot. Raises DecoderBusy if all, or half of them by this user, are in use."""
        with self._lock:
            most = settings.PHOTOS_DECODERS
            if self._used.total() >= most:
                raise DecoderBusy("too many pictures are being decoded")
            if self._used[user] >= most // 2:
                raise DecoderBusy(f"{self._used[user]} of your pictures are being decoded")
            self._used[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._used -= Counter([user])  # also removes users with 0 slots


_slots = DecoderSlots()


def read_picture(file: IO[bytes], zone: tzinfo, user: int) -> Picture:
    """Return the decoded picture. `user` is the id of the uploader; times without a zone are in
    `zone`. Raises InvalidPicture or DecoderBusy."""
    with _slots.take(user), _with_descriptor(file) as source:
        header, _, copy = _decode(source).partition(b"\n")
    values = json.loads(header)
    if "error" in values:
        raise InvalidPicture(values["error"])
    exif = Exif(**values["exif"])
    if "taken_at" in exif.values:
        at = datetime.fromisoformat(exif.values["taken_at"])
        exif.values["taken_at"] = at if at.tzinfo else at.replace(tzinfo=zone)
    return Picture(values["suffix"], copy, exif)


@contextmanager
def _with_descriptor(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a copy of the file that a process can inherit, positioned at its beginning."""
    if isinstance(file, TemporaryUploadedFile):  # Django keeps large uploads on disk
        with open(file.temporary_file_path(), "rb") as stored:
            yield stored
        return
    file.seek(0)
    with tempfile.TemporaryFile() as copy:
        copyfileobj(file, copy)
        copy.seek(0)
        yield copy


def _decode(source: IO[bytes]) -> bytes:
    """Run a decoder process and return its output. The process limits its own time and memory."""
    seconds = settings.PHOTOS_DECODE_SECONDS
    wall_seconds = seconds + WAIT_SECONDS
    limits = Limits(os.getpid(), seconds, wall_seconds, settings.PHOTOS_MAX_MEGAPIXELS)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", decoder.__name__, json.dumps(asdict(limits))],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=BASE_DIR,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        )
    except OSError as error:  # no memory, or too many processes
        raise DecoderBusy(f"the decoder cannot be started: {error.strerror}") from error
    with process:
        try:
            output, errors = process.communicate(timeout=wall_seconds)
        except subprocess.TimeoutExpired:
            raise DecoderBusy(f"the picture was not decoded within {wall_seconds} s") from None
        finally:
            process.kill()
    if process.returncode == 0:
        return output
    raise _failure(process.returncode, errors)


def _failure(status: int, errors: bytes) -> Exception:
    if -status in (signal.SIGXCPU, signal.SIGKILL):
        limit = f"{settings.PHOTOS_DECODE_SECONDS} s (PHOTOS_DECODE_SECONDS)"
        advice = "save the picture again in a simpler form"
        return InvalidPicture(f"decoding the picture takes more than {limit}; {advice}")
    if -status == signal.SIGALRM:
        return DecoderBusy("the picture was not decoded in time")
    text = errors.decode(errors="replace")[-2000:]
    log.error("photos.decoder_failed", status=status, output=text)
    if status < 0:
        return InvalidPicture("the picture cannot be decoded")
    return RuntimeError(f"the decoder ended with status {status}")
