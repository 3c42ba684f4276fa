"""One page of a backend's notification log, read from JSON or XML, whatever it looks like."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

MOST = 2**62
"""A number above it is no notification's."""


class BadPage(ValueError):
    """What came is not a page of the log; nothing of it is used."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One entry of the log, as it came. `values` is a mapping, unless the backend erred."""

    number: int
    type: str
    occurred_at: datetime | None
    values: Any


@dataclass(frozen=True, slots=True)
class Page:
    """What a read from `start` gave; `next` is the number to go on from."""

    start: int
    next: int
    sync_lost: bool = False
    limit_reached: bool = False
    notifications: list[Notification] = field(default_factory=list)

    @property
    def is_reset(self) -> bool:
        """The log ends before the place that was asked for: it began anew."""
        return self.next < self.start

    @property
    def is_pruned(self) -> bool:
        """The place that was asked for is gone, while later notifications came."""
        return self.sync_lost and self.next > self.start


def from_json(body: bytes, start: int) -> Page:
    """Read a page that was asked for with `view=json`; raise BadPage if it is none."""
    try:
        found = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadPage(f"{_kind(body)}, not a page in JSON ({error})"[:300]) from None
    if not isinstance(found, dict):
        raise BadPage("JSON, but not a page of the log: the outermost is no object")
    entries = found.get("notification", [])
    if not isinstance(entries, list):
        raise BadPage("JSON, but not a page of the log: `notification` is no list")
    notifications = [_from_entry(start + k, entry) for k, entry in enumerate(entries)]
    return _page(start, found.get("next"), found, notifications)


def from_xml(body: bytes, start: int) -> Page:
    """Read a page in XML; raise BadPage if it is none, or ill-formed, or tries to expand."""
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


def _page(start: int, following: Any, marks: Any, notifications: list[Notification]) -> Page:
    if not isinstance(following, int | str) or isinstance(following, bool):
        raise BadPage("not a page of the log: it has no `next`")
    try:
        number = int(following)
    except ValueError:
        raise BadPage(f"not a page of the log: `next` is {str(following)[:40]!r}") from None
    page = Page(
        start=start,
        next=number,
        sync_lost=marks.get("sync") == "lost",
        limit_reached=str(marks.get("limit_reached", "0")) not in ("0", "", "False", "None"),
        notifications=notifications,
    )
    _check(page)
    return page


def _check(page: Page) -> None:
    """Refuse a page that contradicts itself: its events would get wrong numbers."""
    if not 1 <= page.next <= MOST:
        raise BadPage(f"not a page of the log: `next` is {page.next}")
    count = len(page.notifications)
    wanted = 0 if page.sync_lost or page.is_reset else page.next - page.start
    if count != wanted:
        raise BadPage(
            f"a page that contradicts itself: from {page.start}, next {page.next},"
            f" with {count} notifications"
        )


def _from_entry(number: int, entry: Any) -> Notification:
    if not isinstance(entry, dict):
        return Notification(number, "", None, entry)
    values = entry.get("data")
    if isinstance(values, dict):
        values = {repaired(key): _repaired_value(value) for key, value in values.items()}
    type = entry.get("type")
    if not isinstance(type, str):
        return Notification(number, "", _time(entry.get("time")), entry)
    return Notification(number, type, _time(entry.get("time")), {} if values is None else values)


def _from_element(number: int, element: Element) -> Notification:
    values = {item.get("key", ""): item.text or "" for item in element.iter("data")}
    return Notification(number, element.get("type", ""), _time(element.get("time")), values)


def _time(value: Any) -> datetime | None:
    """Return the time of a notification; None (the time of recording counts) if it has none."""
    try:
        return datetime.fromtimestamp(int(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _repaired_value(value: Any) -> Any:
    return repaired(value) if isinstance(value, str) else value


def repaired(text: str) -> str:
    """Undo the backend's double encoding: its `view=json` sends é as Ã©.

    What is not the UTF-8 of something, read as Latin-1, is left as it is.
    """
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


def _kind(body: bytes) -> str:
    """Say in a word what came instead of a page."""
    beginning = body[:200].lstrip().lower()
    if not beginning:
        return "nothing"
    if beginning.startswith((b"<!doctype html", b"<html")):
        return "HTML"
    return "XML" if beginning.startswith(b"<") else "something else or a part"
