"""Parse a page of the log while it arrives. Its first byte shows whether it is JSON or XML."""

from dataclasses import replace

from tailrace.domains.builds.sources.json_page import JsonPage
from tailrace.domains.builds.sources.log_page import (
    BadPage,
    Notification,
    Page,
    page_of,
    to_notification,
)
from tailrace.domains.builds.sources.xml_page import XmlPage

ENTRIES_PER_LIMIT = 4
"""The size limit of a part of a page, divided by this, is the size limit of one entry."""


class PageParser:
    """Parses the answer to a read from `start`, in parts of about `max_bytes`."""

    def __init__(self, start: int, max_bytes: int) -> None:
        self.start = start
        self.size = 0
        """Number of bytes of the part that is being read."""
        self.is_xml = False
        self.number = start
        """The number of the next entry."""
        self._max_bytes = max_bytes
        self._page: JsonPage | XmlPage | None = None

    @property
    def has_entries(self) -> bool:
        """Whether the part that is being read has complete entries."""
        return bool(self._page and self._page.entries)

    @property
    def is_full(self) -> bool:
        """Whether the part that is being read has reached its size limit."""
        return self.size >= self._max_bytes and self.has_entries

    def feed(self, chunk: bytes) -> None:
        """Parse the next piece of the answer; raise BadPage if the answer is not a page."""
        self.size += len(chunk)
        if self._page is None:
            chunk = chunk.lstrip()
            if not chunk:
                return
            self._page = self._new_page(chunk)
        self._page.feed(chunk)

    def part(self) -> Page:
        """Return the complete entries as a part of the page, and begin the next part."""
        start, notifications = self.number, self._take_entries()
        return Page(start, self.number, limit_reached=True, notifications=notifications)

    def finish(self) -> Page:
        """Return the last part of the page. Raise IncompletePage if the page is incomplete, and
        BadPage if it is inconsistent."""
        if self._page is None:
            raise BadPage("an empty answer instead of a page of the log")
        self._page.finish()
        start, notifications = self.number, self._take_entries()
        page = page_of(self.start, self.number - self.start, self._page.members, notifications)
        return page if start == self.start else replace(page, start=start)

    def _take_entries(self) -> list[Notification]:
        if self._page is None:
            return []
        entries, self._page.entries = self._page.entries, []
        notifications = [
            to_notification(number, entry, encoded_twice=not self.is_xml)
            for number, entry in enumerate(entries, self.number)
        ]
        self.number += len(entries)
        self.size = 0
        return notifications

    def _new_page(self, beginning: bytes) -> JsonPage | XmlPage:
        lowered = beginning[:200].lower()
        if lowered.startswith((b"<!doctype html", b"<html")):
            raise BadPage("HTML instead of a page in JSON or XML")
        max_entry = self._max_bytes // ENTRIES_PER_LIMIT
        self.is_xml = beginning.startswith(b"<")
        return XmlPage(max_entry) if self.is_xml else JsonPage(max_entry)
