"""A page of a backend's notification log, and its entries."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tailrace.domains.builds.cut_values import CUT
from tailrace.domains.builds.unix_time import unix_time

MAX_NUMBER = 2**62
"""Notifications have no numbers above this."""
DIGEST_BYTES = 8


class BadPage(ValueError):
    """The answer is not a page of the log; nothing in it is used."""


class IncompletePage(BadPage):
    """The answer ended in the middle of a page. The entries before are whole."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One entry of the log. `values` is a mapping, unless the backend sent something else."""

    number: int
    type: str
    occurred_at: datetime | None
    """None: it counts as happened when it is recorded."""
    values: Any

    @property
    def digest(self) -> bytes:
        """Return a digest of type, time and values: the same for JSON and XML.

        It is compared with what earlier versions have stored. Were it computed in another way, or
        the values parsed in another way, every log would look like a new one.
        """
        at = self.occurred_at and self.occurred_at.timestamp()
        try:
            text = json.dumps([self.type, at, _comparable(self.values)], sort_keys=True)
        except (ValueError, RecursionError):  # nested too deeply
            text = json.dumps([self.type, at])
        hashed = hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES)
        return hashed.digest()


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to a read from `start`, or a part of it; `next` is where the next read begins."""

    start: int
    next: int
    sync_lost: bool = False
    limit_reached: bool = False
    """There is more to read at once."""
    notifications: list[Notification] = field(default_factory=list)

    @property
    def is_reset(self) -> bool:
        """The log ends before `start`: it was reset."""
        return self.next < self.start

    @property
    def is_pruned(self) -> bool:
        """`start` was pruned, and later notifications exist."""
        return self.sync_lost and self.next > self.start


def page_of(
    start: int, count: int, members: Mapping[str, Any], notifications: list[Notification]
) -> Page:
    """Return the last part of a page: `members` are those beside the notifications, `count` is the
    number of all its notifications, earlier parts included. Raise BadPage if it is inconsistent.
    """
    page = Page(
        start=start,
        next=_next_number(members.get("next")),
        sync_lost=members.get("sync") == "lost",
        limit_reached=str(members.get("limit_reached", "0")) not in ("0", "", "False", "None"),
        notifications=notifications,
    )
    if not 1 <= page.next <= MAX_NUMBER:
        raise BadPage(f"not a page of the log: `next` is {page.next}")
    # Another count would give its events wrong numbers.
    expected = 0 if page.sync_lost or page.is_reset else page.next - page.start
    if count != expected:
        raise BadPage(f"an inconsistent page: from {start}, next {page.next}, with {count} entries")
    return page


def _next_number(value: Any) -> int:
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise BadPage("not a page of the log: it has no `next`")
    try:
        return int(value)
    except ValueError:
        raise BadPage(f"not a page of the log: `next` is {str(value)[:40]!r}") from None


def to_notification(number: int, entry: Any, *, encoded_twice: bool) -> Notification:
    """Return an entry of a page; `encoded_twice` for one in JSON."""
    if not isinstance(entry, dict):
        return Notification(number, "", None, entry)
    values = entry.get("data")
    if isinstance(values, dict) and encoded_twice:
        values = {
            repaired(key): repaired(value) if isinstance(value, str) else value
            for key, value in values.items()
        }
    type, occurred_at = entry.get("type"), unix_time(entry.get("time"))
    if not isinstance(type, str):
        return Notification(number, "", occurred_at, entry)
    return Notification(number, type, occurred_at, {} if values is None else values)


def repaired(text: str) -> str:
    """Undo the backend's double encoding: its `view=json` sends é as Ã©.

    Other text is returned unchanged.
    """
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def _comparable(values: Any) -> Any:
    """Return the values as JSON and XML both have them. What was cut is not compared: each view
    cuts at another place."""
    if not isinstance(values, dict):
        return values
    cut = str(values.get(CUT, "")).split(", ") if CUT in values else ()
    return {
        key: value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else value
        for key, value in values.items()
        if key not in cut
    }
