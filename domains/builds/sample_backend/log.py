"""The notification log of the sample backend."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

PAGE_SIZE = 1000
"""The most notifications in one answer."""
PRUNE_DISTANCE = 1000
"""A read prunes if it begins more than this past the first retained number."""
KEPT_BEFORE_START = 500
"""Notifications before that read's start which are kept."""
MAX_RETAINED = 20_000
"""The most notifications that are kept in memory."""


@dataclass(frozen=True, slots=True)
class Notification:
    number: int
    type: str
    time: int
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a read. `next` is where the next read begins."""

    next: int
    sync_lost: bool = False
    limit_reached: bool = False
    notifications: list[Notification] = field(default_factory=list)
    has_start: bool = True
    """Whether the read named a number to start from."""


class NotificationLog:
    """Numbers from `first` up to `end` (the number that comes next) are retained.

    With a journal, a file of JSON lines, the log continues after a restart.
    """

    def __init__(self, journal: Path | None = None, first: int = 1) -> None:
        self.first = self.end = first
        self._entries: deque[Notification] = deque()
        self._changed = threading.Condition()
        self._journal: IO[str] | None = None
        if journal is not None:
            self._load(journal)
            self._journal = self._open(journal)

    def append(self, type: str, values: Mapping[str, str], at: int | None = None) -> int:
        """Add a notification and wake waiting readers; return its number."""
        with self._changed:
            entry = Notification(self.end, type, at or int(time.time()), dict(values))
            self._write(entry)
            self._entries.append(entry)
            self.end += 1
            self.prune_below(self.end - MAX_RETAINED)
            self._changed.notify_all()
            return entry.number

    def read(
        self, start: int, *, prune: bool = True, block: bool = False, timeout: float | None = None
    ) -> Answer:
        """Read as the source server does; 0 is no start. `timeout` limits a wait in seconds."""
        with self._changed:
            if not start:
                return Answer(self.end, sync_lost=True, has_start=False)
            if start < self.first:
                return Answer(self.end, sync_lost=True)
            if block and start == self.end:
                self._changed.wait_for(lambda: start != self.end, timeout)
            if start > self.end:
                return Answer(self.end)
            if prune and start > self.first + PRUNE_DISTANCE:
                self.prune_below(start - KEPT_BEFORE_START)
            entries = list(
                islice(self._entries, start - self.first, start - self.first + PAGE_SIZE)
            )
            end = start + len(entries)
            return Answer(end, limit_reached=end < self.end, notifications=entries)

    def prune_below(self, number: int) -> None:
        """Remove the notifications before `number`."""
        with self._changed:
            while self.first < min(number, self.end):
                self._entries.popleft()
                self.first += 1

    def reset(self, first: int = 1) -> None:
        """Start an empty log, as a server does when its log was removed."""
        with self._changed:
            self._entries.clear()
            self.first = self.end = first
            self._changed.notify_all()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def __iter__(self) -> Iterator[Notification]:
        return iter(list(self._entries))

    def _write(self, entry: Notification) -> None:
        if self._journal is not None:
            self._journal.write(_line(entry))
            self._journal.flush()

    def _load(self, journal: Path) -> None:
        if not journal.is_file():
            return
        for line in journal.read_text().splitlines():
            try:
                number, type, at, values = json.loads(line)
            except ValueError:
                continue  # the incomplete last line of a process that was killed
            self._entries.append(Notification(number, type, at, values))
        while len(self._entries) > MAX_RETAINED:
            self._entries.popleft()
        if self._entries:
            self.first, self.end = self._entries[0].number, self._entries[-1].number + 1

    def _open(self, journal: Path) -> IO[str]:
        """Rewrite the journal with the retained notifications, and return it open."""
        journal.parent.mkdir(parents=True, exist_ok=True)
        new_file = journal.with_suffix(".new")
        new_file.write_text("".join(_line(entry) for entry in self._entries))
        new_file.replace(journal)
        return journal.open("a")


def _line(entry: Notification) -> str:
    return json.dumps([entry.number, entry.type, entry.time, entry.values]) + "\n"
