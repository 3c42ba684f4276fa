"""Backend: reads one backend's notification log page by page, and what its entries point to."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import structlog
from django.conf import settings

from domains.builds.sources.http import BackendError, Client, Silence
from domains.builds.sources.page import BadPage, Page, from_json, from_xml

log = structlog.get_logger(__name__)

BLOCK_SECONDS = 25.0
"""A long poll that brought nothing is given up after this time."""


__all__ = ["Backend", "BackendError", "NotFound"]


class NotFound(BackendError):
    """The backend does not have what was asked for."""


class Backend:
    """One backend: its notification log, and what else it tells; use it as a context manager.

    All calls raise BackendError.
    """

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self._client = Client(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def page(self, start: int, *, block: bool = False, noprune: bool | None = None) -> Page | None:
        """Read the log from `start`, in the view that OBS_VIEW says.

        With `block` the backend answers when there is something new; None when there was nothing
        for BLOCK_SECONDS. `noprune` None is what OBS_NOPRUNE says. A page in XML that cannot be
        read (control characters make it ill-formed) is asked for again as JSON.
        """
        keep = settings.OBS_NOPRUNE if noprune is None else noprune
        query: dict[str, str | int] = {"start": start}
        if keep:
            query["noprune"] = 1
        if settings.OBS_VIEW == "xml":
            body = self._ask(query, block)
            if body is None:
                return None
            try:
                return from_xml(body, start)
            except BadPage as error:
                log.warning("poll.xml_unreadable", backend=self.name, start=start, error=str(error))
                block = False
        body = self._ask(query | {"view": "json"}, block)
        return None if body is None else self._from_json(body, start)

    def end(self) -> int:
        """Return the number that comes next, beyond all that is in the log."""
        body = self._ask({"view": "json", "noprune": 1}, False)
        return self._from_json(body or b"", 0).next

    def get(self, path: str, **query: str) -> bytes:
        """Return the body of `path`; raise NotFound for a 404."""
        return self._succeed("GET", path, query)

    def delete(self, path: str) -> None:
        """Remove what `path` names; raise NotFound for a 404."""
        self._succeed("DELETE", path, {})

    def _succeed(
        self, method: str, path: str, query: Mapping[str, str | int], silence: float | None = None
    ) -> bytes:
        answer = self._client.request(method, path, query, silence=silence)
        if answer.status != 200:
            kind = NotFound if answer.status == 404 else BackendError
            raise kind(f"{self._client.where} answered {answer.complaint()}")
        return answer.body

    def _from_json(self, body: bytes, start: int) -> Page:
        try:
            return from_json(body, start)
        except BadPage as error:
            raise BackendError(f"{self._client.where} sent {error}") from None

    def _ask(self, query: dict[str, str | int], block: bool) -> bytes | None:
        """Return the body of an answer; None if there was none to a request that blocks."""
        try:
            blocking = query | ({"block": 1} if block else {})
            silence = BLOCK_SECONDS if block else None
            return self._succeed("GET", "/lastnotifications", blocking, silence)
        except Silence:
            if block:
                return None
            raise
