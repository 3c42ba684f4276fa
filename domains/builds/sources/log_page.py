"""A page of a backend's notification log, and its entries."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tailrace.domains.builds.backends.unix_time import unix_time
from tailrace.domains.builds.event_types.cut_values import CUT

MAX_NUMBER = 2**62
"""Notifications have no numbers above this."""
DIGEST_BYTES = 8


class BadPage(ValueError):
    """Not a valid page of the log. The message completes the sentence "the backend sent …"."""


class IncompletePage(BadPage):
    """The answer ended in the middle of a page. The entries before its end are complete."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One entry of the log. `values` is a mapping, unless the backend sent something else."""

    number: int
    type: str
    occurred_at: datetime | None
    """None if the entry has no valid time. Then the event gets the time of its recording."""
    values: Any

    @property
    def digest(self) -> bytes:
        """Return a digest of type, time and values, the same for JSON and XML.

        If its computation or the parsing of values changes, every log looks like a new log.
        """
        at = self.occurred_at and self.occurred_at.timestamp()
        try:
            text = json.dumps([self.type, at, _comparable(self.values)], sort_keys=True)
        except (ValueError, RecursionError):  # nested too deeply
            text = json.dumps([self.type, at])
        return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to a read from `start`, or a part of it. The next read begins at `next`."""

    start: int
    next: int
    sync_lost: bool = False
    limit_reached: bool = False
    """Whether the log has more entries that can be read at once."""
    notifications: list[Notification] = field(default_factory=list)

    @property
    def is_reset(self) -> bool:
        """Whether the log ends before `start`, because it was cut or replaced."""
        return self.next < self.start

    @property
    def is_pruned(self) -> bool:
        """Whether the entry `start` was pruned and later entries exist."""
        return self.sync_lost and self.next > self.start


def page_of(
    start: int, count: int, members: Mapping[str, Any], notifications: list[Notification]
) -> Page:
    """Return the last part of a page, with its notifications; raise BadPage if the page is
    inconsistent. `count` is the number of notifications in all parts of the page."""
    page = Page(
        start=start,
        next=_next_number(members.get("next")),
        sync_lost=members.get("sync") == "lost",
        limit_reached=str(members.get("limit_reached", "0")) not in ("0", "", "False", "None"),
        notifications=notifications,
    )
    if not 1 <= page.next <= MAX_NUMBER:
        raise BadPage(f"an invalid page: `next` is {page.next}")
    # With another count, events would get wrong numbers.
    expected = 0 if page.sync_lost or page.is_reset else page.next - page.start
    if count != expected:
        raise BadPage(f"an inconsistent page: from {start}, next {page.next}, with {count} entries")
    return page


def _next_number(value: Any) -> int:
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise BadPage("an invalid page: it has no `next`")
    try:
        return int(value)
    except ValueError:
        raise BadPage(f"an invalid page: `next` is {str(value)[:40]!r}") from None


def to_notification(number: int, entry: Any, *, encoded_twice: bool) -> Notification:
    """Return the notification for an entry of a page. `encoded_twice` is true for pages in JSON."""
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
    """Undo the double encoding of `view=json`, in which the backend sends é as Ã©."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def _comparable(values: Any) -> Any:
    """Return the values in a form that is the same for JSON and XML. Cut values are left out: the
    two parsers may cut them at different lengths."""
    if not isinstance(values, dict):
        return values
    cut = str(values.get(CUT, "")).split(", ") if CUT in values else ()
    return {
        key: value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else value
        for key, value in values.items()
        if key not in cut
    }
