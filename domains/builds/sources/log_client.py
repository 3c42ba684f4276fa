"""A client for the notification log of one backend."""

import structlog
from django.conf import settings

from domains.builds.backends.client import BackendClient, BackendError, NoAnswer
from domains.builds.sources.log_page import BadPage, Page, from_json, from_xml

log = structlog.get_logger(__name__)

BLOCK_SECONDS = 25.0
"""How long a long poll waits for something new."""


class LogClient(BackendClient):
    """Reads a backend's notification log page by page. All calls raise BackendError."""

    def page(self, start: int, *, block: bool = False, noprune: bool | None = None) -> Page | None:
        """Read the log from `start`, in the view that OBS_VIEW names.

        With `block` the backend answers as soon as there is something new; the result is None if
        there was nothing for BLOCK_SECONDS. `noprune` None means OBS_NOPRUNE. A page in XML that
        cannot be parsed (control characters make it ill-formed) is requested again as JSON.
        """
        query: dict[str, str | int] = {"start": start}
        if settings.OBS_NOPRUNE if noprune is None else noprune:
            query["noprune"] = 1
        if settings.OBS_VIEW == "xml":
            body = self._read(query, block)
            if body is None:
                return None
            try:
                return from_xml(body, start)
            except BadPage as error:
                log.warning("poll.xml_unreadable", backend=self.name, start=start, error=str(error))
                block = False
        body = self._read(query | {"view": "json"}, block)
        return None if body is None else self._parse(body, start)

    def end(self) -> int:
        """Return the number after the log's last entry."""
        return self._parse(self._read({"view": "json", "noprune": 1}, False) or b"", 0).next

    def _parse(self, body: bytes, start: int) -> Page:
        try:
            return from_json(body, start)
        except BadPage as error:
            raise BackendError(f"{self.host} sent {error}") from None

    def _read(self, query: dict[str, str | int], block: bool) -> bytes | None:
        """Return the body of an answer; None if a long poll brought nothing."""
        path = "/lastnotifications"
        if not block:
            return self.get(path, query)
        try:
            return self.get(path, query | {"block": 1}, silence=BLOCK_SECONDS)
        except NoAnswer:
            return None
