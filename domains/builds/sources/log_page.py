"""Parse one page of a backend's notification log, from JSON or XML."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from domains.builds.unix_time import unix_time

MAX_NUMBER = 2**62
"""Notifications have no numbers above this."""


class BadPage(ValueError):
    """The answer is not a page of the log; nothing in it is used."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One entry of the log. `values` is a mapping, unless the backend sent something else."""

    number: int
    type: str
    occurred_at: datetime | None
    """None: it counts as happened when it is recorded."""
    values: Any


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to a read from `start`; `next` is where the next read begins."""

    start: int
    next: int
    sync_lost: bool = False
    limit_reached: bool = False
    notifications: list[Notification] = field(default_factory=list)

    @property
    def is_reset(self) -> bool:
        """The log ends before `start`: it was reset."""
        return self.next < self.start

    @property
    def is_pruned(self) -> bool:
        """`start` was pruned, and later notifications exist."""
        return self.sync_lost and self.next > self.start


def from_json(body: bytes, start: int) -> Page:
    """Parse a page that was requested with `view=json`; raise BadPage if it is not one."""
    try:
        page = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadPage(f"{_kind(body)}, not a page in JSON ({error})"[:300]) from None
    if not isinstance(page, dict):
        raise BadPage("JSON, but not a page of the log: not an object")
    entries = page.get("notification", [])
    if not isinstance(entries, list):
        raise BadPage("JSON, but not a page of the log: `notification` is not a list")
    notifications = [_from_entry(start + k, entry) for k, entry in enumerate(entries)]
    return _page(start, page.get("next"), page, notifications)


def from_xml(body: bytes, start: int) -> Page:
    """Parse a page in XML; raise BadPage if it is not one, is ill-formed, or has a DTD."""
    try:
        root = ElementTree.fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise BadPage(f"{_kind(body)}, not well-formed XML ({error})"[:300]) from None
    if root.tag != "notifications":
        raise BadPage(f"XML, but not a page of the log: <{root.tag}>"[:300])
    notifications = [
        _from_element(start + k, element) for k, element in enumerate(root.iter("notification"))
    ]
    return _page(start, root.get("next"), root.attrib, notifications)


def _page(start: int, next_number: Any, flags: Any, notifications: list[Notification]) -> Page:
    if not isinstance(next_number, int | str) or isinstance(next_number, bool):
        raise BadPage("not a page of the log: it has no `next`")
    try:
        number = int(next_number)
    except ValueError:
        raise BadPage(f"not a page of the log: `next` is {str(next_number)[:40]!r}") from None
    page = Page(
        start=start,
        next=number,
        sync_lost=flags.get("sync") == "lost",
        limit_reached=str(flags.get("limit_reached", "0")) not in ("0", "", "False", "None"),
        notifications=notifications,
    )
    _check(page)
    return page


def _check(page: Page) -> None:
    """Refuse an inconsistent page: its events would get wrong numbers."""
    if not 1 <= page.next <= MAX_NUMBER:
        raise BadPage(f"not a page of the log: `next` is {page.next}")
    count = len(page.notifications)
    expected = 0 if page.sync_lost or page.is_reset else page.next - page.start
    if count != expected:
        raise BadPage(
            f"an inconsistent page: from {page.start}, next {page.next}, with {count} notifications"
        )


def _from_entry(number: int, entry: Any) -> Notification:
    if not isinstance(entry, dict):
        return Notification(number, "", None, entry)
    values = entry.get("data")
    if isinstance(values, dict):
        values = {
            repaired(key): repaired(value) if isinstance(value, str) else value
            for key, value in values.items()
        }
    type, occurred_at = entry.get("type"), unix_time(entry.get("time"))
    if not isinstance(type, str):
        return Notification(number, "", occurred_at, entry)
    return Notification(number, type, occurred_at, {} if values is None else values)


def _from_element(number: int, element: Element) -> Notification:
    values = {item.get("key", ""): item.text or "" for item in element.iter("data")}
    return Notification(number, element.get("type", ""), unix_time(element.get("time")), values)


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


def _kind(body: bytes) -> str:
    """Describe what was received instead of a page."""
    beginning = body[:200].lstrip().lower()
    if not beginning:
        return "nothing"
    if beginning.startswith((b"<!doctype html", b"<html")):
        return "HTML"
    return "XML" if beginning.startswith(b"<") else "something else or incomplete"
