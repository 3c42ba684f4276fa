"""Append each event as a line of JSON to a file (file://). Several processes may use one file."""

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from django.conf import settings

from tailrace.domains.builds.destinations.base import Bus, Message, Misconfigured, Unavailable
from tailrace.jobs.destinations.delivery import SENT, DeliveryResult


class FileBus(Bus):
    """Appends lines such as `{"id": 12, "key": "opensuse.obs.package.commit", "body": {…}}`.

    `file:///var/log/bus.ndjson` is absolute; `file://var/bus.ndjson` is relative to the
    project's folder.
    """

    schemes = ("file",)

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        host = "" if self.parts.netloc == "localhost" else self.parts.netloc
        path = unquote(host + self.parts.path)
        if not path.strip("/") or path.endswith("/"):
            raise Misconfigured(f"{url}: does not name a file")
        self.path = Path(settings.BASE_DIR) / path

    def send(self, messages: Sequence[Message]) -> list[DeliveryResult]:
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
            raise Unavailable(self.describe(error)) from error
        return [SENT] * len(messages)


def _line(message: Message) -> bytes:
    key = message.key.replace("\\", "\\\\").replace('"', '\\"').encode()
    body = json.dumps(message.body.decode()).encode() if message.is_metric else message.body
    return b'{"id": %d, "key": "%b", "body": %b}\n' % (message.id, key, body)


def _append(file: int, lines: bytes) -> None:
    """Append all lines or none, on a line of their own even if a crash left an incomplete line. If
    the disk is full, an incomplete write is undone."""
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
