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
"""How long a long poll waits for something new."""

Query = dict[str, str | int]


class LogClient(BackendClient):
    """Reads a backend's notification log. All calls raise BackendError."""

    def pages(self, start: int) -> Generator[Page, None, None]:
        """Read a page from `start`, in the view that OBS_VIEW names; yield it in one or more parts.

        A part ends at OBS_PAGE_LIMIT_BYTES, or after OBS_TIMEOUT_SECONDS: so a page of any size is
        read, and little of it is kept. When an answer is cut, its complete entries are yielded
        before the error is raised. A page in XML that cannot be parsed (control characters make it
        ill-formed) is requested again as JSON.
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
        """Return the first part of a page: its flags, with its first entry or none. `next` may be
        the number after that entry. Prunes nothing."""
        for page in self._as_json(start, {"noprune": 1}, first_entry=True):
            return page
        raise BackendError(f"{self.host} sent nothing")

    def end(self) -> int:
        """Return the number after the log's last entry."""
        (page,) = self._as_json(0, {"noprune": 1})
        return page.next

    def wait(self, start: int) -> bool:
        """Wait until the log has an entry of number `start`; return False if that takes more than
        BLOCK_SECONDS.

        What comes is not used: meanwhile the log may have become another one. A backend that
        hands the request over forgets its view, so that it may be JSON or XML.
        """
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
        """Yield the parts of a page; with `first_entry` only the first, as soon as it has one."""
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
                last = parser.finish()
            except (httpx.HTTPError, OSError, Unreachable, IncompletePage):
                if parser.has_entries:
                    yield parser.part()
                raise
        yield last


def _view(view: str) -> Query:
    return {"view": "json"} if view == "json" else {}
