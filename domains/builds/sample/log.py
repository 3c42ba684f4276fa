"""The notification log: what a build service's source server keeps of what happened."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

PAGE = 1000
"""Notifications that one answer holds at most."""
SLACK = 1000
"""How far past the first retained number a read has to begin to prune."""
KEPT = 500
"""Notifications before that read's start which stay."""
AT_MOST = 20_000
"""Notifications that are retained at all: this log does without a file server's disk."""


@dataclass(frozen=True, slots=True)
class Notification:
    number: int
    type: str
    time: int
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a read of the log gives. `next` is where to go on."""

    next: int
    sync_lost: bool = False
    limit_reached: bool = False
    notifications: list[Notification] = field(default_factory=list)
    asked_from_start: bool = True


class NotificationLog:
    """Numbers from `first` up to `end` (the number that comes next) are retained.

    With a journal, a file of one JSON line each, the log goes on after a restart where it was.
    """

    def __init__(self, journal: Path | None = None, first: int = 1) -> None:
        self.first = self.end = first
        self._kept: deque[Notification] = deque()
        self._news = threading.Condition()
        self._journal: IO[str] | None = None
        if journal is not None:
            self._load(journal)
            self._journal = self._open(journal)

    def append(self, type: str, values: Mapping[str, str], at: int | None = None) -> int:
        """Add a notification and wake who waits for it; return its number."""
        with self._news:
            made = Notification(self.end, type, at or int(time.time()), dict(values))
            self._write(made)
            self._kept.append(made)
            self.end += 1
            self.prune_below(self.end - AT_MOST)
            self._news.notify_all()
            return made.number

    def read(
        self, start: int, *, prune: bool = True, block: bool = False, patience: float | None = None
    ) -> Answer:
        """Answer as the source server does; 0 is no start. `patience` bounds a wait in seconds."""
        with self._news:
            if not start:
                return Answer(self.end, sync_lost=True, asked_from_start=False)
            if start < self.first:
                return Answer(self.end, sync_lost=True)
            if block and start == self.end:
                self._news.wait_for(lambda: start != self.end, patience)
            if start > self.end:
                return Answer(self.end)
            if prune and start > self.first + SLACK:
                self.prune_below(start - KEPT)
            found = list(islice(self._kept, start - self.first, start - self.first + PAGE))
            following = start + len(found)
            return Answer(following, limit_reached=following < self.end, notifications=found)

    def prune_below(self, number: int) -> None:
        """Forget what comes before `number`."""
        with self._news:
            while self.first < min(number, self.end):
                self._kept.popleft()
                self.first += 1

    def reset(self, first: int = 1) -> None:
        """Begin anew, as a server does whose log was removed."""
        with self._news:
            self._kept.clear()
            self.first = self.end = first
            self._news.notify_all()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def __iter__(self) -> Iterator[Notification]:
        return iter(list(self._kept))

    def _write(self, made: Notification) -> None:
        if self._journal is not None:
            self._journal.write(_line(made))
            self._journal.flush()

    def _load(self, journal: Path) -> None:
        if not journal.is_file():
            return
        for line in journal.read_text().splitlines():
            try:
                number, type, at, values = json.loads(line)
            except ValueError:
                continue  # the last line of a process that was killed
            self._kept.append(Notification(number, type, at, values))
        while len(self._kept) > AT_MOST:
            self._kept.popleft()
        if self._kept:
            self.first, self.end = self._kept[0].number, self._kept[-1].number + 1

    def _open(self, journal: Path) -> IO[str]:
        """Write the journal anew, with what is retained, and keep it open."""
        journal.parent.mkdir(parents=True, exist_ok=True)
        fresh = journal.with_suffix(".new")
        fresh.write_text("".join(_line(made) for made in self._kept))
        fresh.replace(journal)
        return journal.open("a")


def _line(made: Notification) -> str:
    return json.dumps([made.number, made.type, made.time, made.values]) + "\n"
