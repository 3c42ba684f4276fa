"""The notification log of the sample backend."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

PAGE_SIZE = 1000
"""Maximum number of notifications in one answer."""
PRUNE_DISTANCE = 1000
"""A read prunes the log if it starts more than this many numbers after the first retained one."""
KEPT_BEFORE_START = 500
"""Number of notifications before the start of a read that pruning keeps."""
MAX_RETAINED = 20_000
"""Maximum number of notifications that are kept in memory."""


@dataclass(frozen=True, slots=True)
class Notification:
    number: int
    type: str
    time: int
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a read. `next` is the number at which the next read starts."""

    next: int
    sync_lost: bool = False
    limit_reached: bool = False
    notifications: list[Notification] = field(default_factory=list)
    has_start: bool = True
    """Whether the read named a number to start from."""
    handed_over: bool = False
    """Whether the request has waited. As a real server does, the sample backend then ignores the
    view and answers in XML."""


class NotificationLog:
    """A log with notifications from number `first` up to `end`, which is the next number.

    With a journal, a file of JSON lines, the log continues after a restart.
    """

    def __init__(self, journal: Path | None = None, first: int = 1) -> None:
        self.first = self.end = first
        self._entries: deque[Notification] = deque()
        self._changed = threading.Condition()
        self.closed = False
        self._path: Path | None = None
        self._journal: IO[str] | None = None
        if journal is not None:
            self._load(journal)
            self._path = journal
            self._rewrite()

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
        """Read like the source server. `start` 0 means that the request has no start. `timeout`
        limits the wait of a `block`ing read, in seconds."""
        with self._changed:
            if not start:
                return Answer(self.end, sync_lost=True, has_start=False)
            if start < self.first:
                return Answer(self.end, sync_lost=True)
            if block and start >= self.end:
                # Also if the start is beyond the end: the server waits until the log has this
                # number.
                self._changed.wait_for(lambda: start < self.end or self.closed, timeout)
                return self._entries_from(start, handed_over=True)
            if start > self.end:
                return Answer(self.end)
            if prune and start > self.first + PRUNE_DISTANCE:
                self.prune_below(start - KEPT_BEFORE_START)
            return self._entries_from(start)

    def _entries_from(self, start: int, *, handed_over: bool = False) -> Answer:
        if not self.first <= start < self.end:
            return Answer(self.end, sync_lost=start < self.first, handed_over=handed_over)
        begin = start - self.first
        entries = list(islice(self._entries, begin, begin + PAGE_SIZE))
        end = start + len(entries)
        return Answer(
            end, limit_reached=end < self.end, notifications=entries, handed_over=handed_over
        )

    def prune_below(self, number: int) -> None:
        """Remove the notifications before `number`."""
        with self._changed:
            while self.first < min(number, self.end):
                self._entries.popleft()
                self.first += 1

    def reset(self, first: int = 1) -> None:
        """Start an empty log, like a server whose log was removed."""
        with self._changed:
            self._entries.clear()
            self.first = self.end = first
            self._rewrite()

    def copy(self) -> list[Notification]:
        """Return the entries of the log's file, for example as a backup."""
        with self._changed:
            return list(self._entries)

    def put_back(self, entries: Sequence[Notification]) -> None:
        """Replace the log's file, for example by a backup. Waiting readers continue to wait."""
        with self._changed:
            self._entries = deque(entries)
            self.first = entries[0].number if entries else 1
            self.end = entries[-1].number + 1 if entries else 1
            self._rewrite()

    def cut(self, end: int) -> None:
        """Remove the entries from number `end` on, like a server that crashed before it had written
        them to its disk."""
        self.put_back([entry for entry in self.copy() if entry.number < end])

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify_all()
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

    def _rewrite(self) -> None:
        """Write a journal with only the retained notifications, and open it."""
        if self._path is None:
            return
        if self._journal is not None:
            self._journal.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new_file = self._path.with_suffix(".new")
        new_file.write_text("".join(_line(entry) for entry in self._entries))
        new_file.replace(self._path)
        self._journal = self._path.open("a")


def _line(entry: Notification) -> str:
    return json.dumps([entry.number, entry.type, entry.time, entry.values]) + "\n"
