"""What `make run` prints: all lines of its processes go to a file, and to the terminal only what a
person has to read. When the web server answers, the addresses and passwords follow."""

import logging
import re
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from honcho.printer import Printer

MOST_BYTES = 20_000_000
"""Maximum size of the file; the one before it is kept."""
MOST_LINES = 30
"""The last lines of a process, which are printed if it ends by itself."""
READY_SECONDS, POLL_SECONDS = 60.0, 0.2
_IMPORTANT = re.compile(
    r'\[(warning|error|critical) *\]|"level": "(warning|error|critical)"|ended with status'
)
"""In lines of both LOG_FORMATs."""
_NOISE = re.compile(r"\[flower\.inspector\]")
"""Flower asks the workers before they have started."""
_STOPPED = re.compile(r"(\S+) stopped \(rc=(-?\d+)\)")


class Terminal(Printer):
    """Prints the lines of the processes: all with `all_lines`, otherwise the important ones. Calls
    `when_ready` once, when the web server at `url` answers, or does not within READY_SECONDS."""

    def __init__(
        self, file: Path, url: str, when_ready: Callable[[bool], None], *, all_lines: bool
    ) -> None:
        super().__init__()
        self._file = RotatingFileHandler(file, maxBytes=MOST_BYTES, backupCount=1)
        self._url, self._when_ready, self._all_lines = url, when_ready, all_lines
        self._last: defaultdict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=MOST_LINES))
        self._waits = self._is_ending = False

    def write(self, message: Any) -> None:
        """Write a message of honcho, which has the text of one line and the name of a process."""
        if not self._waits:  # not before: the processes are forked before the first message
            self._waits = True
            threading.Thread(target=self._wait, name="ready", daemon=True).start()
        data = message.data
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)
        line = f"{message.time:%H:%M:%S} {message.name or ''} | {text.rstrip()}"
        self._file.emit(logging.makeLogRecord({"msg": line}))
        self._last[message.name].append(message)
        if message.name == "system":
            self._note_end(text)
        if self._all_lines or self._is_important(message.name, text):
            super().write(message)

    def _is_important(self, name: str, text: str) -> bool:
        if self._is_ending or _NOISE.search(text):
            return False
        return name == "reload" or bool(_IMPORTANT.search(text))

    def _note_end(self, text: str) -> None:
        """Print the last lines of the process that ends first, and with it all."""
        stopped = _STOPPED.search(text)
        if stopped and not self._is_ending and not self._all_lines:
            for message in self._last[stopped[1]]:
                super().write(message)
            super().write(self._last["system"][-1])
        self._is_ending = self._is_ending or bool(stopped) or " received" in text

    def _wait(self) -> None:
        until = time.monotonic() + READY_SECONDS
        while not (answers := self._answers()) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        if not self._is_ending:
            self._when_ready(answers)

    def _answers(self) -> bool:
        try:
            with urlopen(self._url, timeout=5) as answer:  # noqa: S310 - our own web server
                return int(answer.status) == 200
        except OSError:
            return False
