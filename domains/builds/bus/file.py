"""file://: one line of JSON per event, appended to a file that any number of processes share."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from django.conf import settings

from domains.builds.bus.base import SENT, Bus, Delivery, Down, Message, Misconfigured


class FileBus(Bus):
    """Appends `{"id": 12, "key": "opensuse.obs.package.commit", "body": {…}}`.

    `file:///var/log/bus.ndjson` is absolute; `file://var/bus.ndjson` lies in the project's folder.
    """

    schemes = ("file",)

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        host = "" if self.parts.netloc == "localhost" else self.parts.netloc
        where = unquote(host + self.parts.path)
        if not where.strip("/") or where.endswith("/"):
            raise Misconfigured(f"{url}: names no file")
        self.path = Path(settings.BASE_DIR) / where

    def send(self, messages: Sequence[Message]) -> list[Delivery]:
        lines = b"".join(_line(message) for message in messages)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                _append(file, lines)
            finally:
                os.close(file)
        except OSError as error:
            raise Down(self.why(error)) from error
        return [SENT] * len(messages)


def _line(message: Message) -> bytes:
    key = message.key.replace("\\", "\\\\").replace('"', '\\"').encode()
    return b'{"id": %d, "key": "%b", "body": %b}\n' % (message.id, key, message.body)


def _append(file: int, lines: bytes) -> None:
    """Append all or nothing: what a full disk cut short is taken back.

    A line that a crash of the machine cut short is ended first, so that it spoils no other.
    """
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        lines = b"\n" + lines
    written = 0
    try:
        while written < len(lines):
            written += os.write(file, lines[written:])
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise
