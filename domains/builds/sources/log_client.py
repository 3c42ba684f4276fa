"""A client for the notification log of one backend."""

from collections.abc import Generator, Iterator

import httpx
import structlog
from django.conf import settings

from tailrace.domains.builds.backends.client import (
    BackendClient,
    BackendError,
    NoAnswer,
    Unreachable,
)
from tailrace.domains.builds.sources.log_page import BadPage, IncompletePage, Page
from tailrace.domains.builds.sources.page_parser import PageParser

log = structlog.get_logger(__name__)

PATH = "/lastnotifications"
BLOCK_SECONDS = 25.0
"""Maximum wait of a long poll for a new entry."""

Query = dict[str, str | int]


class LogClient(BackendClient):
    """Reads a backend's notification log. All calls raise BackendError."""

    def pages(self, start: int) -> Generator[Page, None, None]:
        """Read a page of any size from `start`, in the format of OBS_VIEW; yield it in parts, which
        end at OBS_PAGE_LIMIT_BYTES or after OBS_TIMEOUT_SECONDS.

        If the answer breaks off, its complete entries are yielded before the error is raised. If a
        page in XML is ill-formed (control characters), it is requested again as JSON.
        """
        query: Query = {"noprune": 1} if settings.OBS_NOPRUNE else {}
        parser = PageParser(start, self._max_bytes)
        try:
            yield from self._stream(parser, query | _view(settings.OBS_VIEW))
        except BadPage as error:
            if not parser.is_xml:
                raise BackendError(f"{self.host} sent {error}") from None
            log.warning("poll.xml_unreadable", backend=self.name, start=start, error=str(error))
            yield from self._as_json(parser.number, query)

    def peek(self, start: int) -> Page:
        """Return the first part of the page from `start`: its flags, and its first entry if it has
        one. `next` may be the number after this entry. The request does not prune the log."""
        for page in self._as_json(start, {"noprune": 1}, first_entry=True):
            return page
        raise BackendError(f"{self.host} sent an empty answer")

    def end(self) -> int:
        """Return the number after the log's last entry."""
        (page,) = self._as_json(0, {"noprune": 1})
        return page.next

    def wait(self, start: int) -> bool:
        """Wait for an entry with number `start`; return False if there is none after BLOCK_SECONDS.
        The answer is not used: it may be JSON or XML, whatever was requested, and the log may have
        been replaced during the wait."""
        query: Query = {"start": start, "block": 1, "noprune": 1, **_view(settings.OBS_VIEW)}
        try:
            with self._open("GET", PATH, query, None, BLOCK_SECONDS):
                return True
        except NoAnswer:
            return False

    def _as_json(self, start: int, query: Query, *, first_entry: bool = False) -> Iterator[Page]:
        parser = PageParser(start, self._max_bytes)
        try:
            yield from self._stream(parser, query | {"view": "json"}, first_entry)
        except BadPage as error:
            raise BackendError(f"{self.host} sent {error}") from None

    def _stream(
        self, parser: PageParser, query: Query, first_entry: bool = False
    ) -> Iterator[Page]:
        """Yield the parts of a page; with `first_entry`, the first part ends after an entry."""
        if parser.start:
            query = {"start": parser.start, **query}
        with self._exchange("GET", PATH, query) as answer:
            try:
                for chunk in answer.chunks(check_time=False):
                    parser.feed(chunk)
                    if parser.has_entries and (first_entry or parser.is_full or answer.is_late):
                        yield parser.part()
                        answer.extend()
                    answer.check_time()
                last_part = parser.finish()
            except (httpx.HTTPError, OSError, Unreachable, IncompletePage):
                if parser.has_entries:
                    yield parser.part()
                raise
        yield last_part


def _view(view: str) -> Query:
    return {"view": "json"} if view == "json" else {}
