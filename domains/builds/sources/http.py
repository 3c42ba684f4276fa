"""Asks a backend over HTTP: bounded in time and size, and with errors that say what is."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
from django.conf import settings

CONNECT_SECONDS = 5.0
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)


class BackendError(Exception):
    """The backend could not be read; the text is for operators and holds no credentials."""


class Silence(BackendError):
    """Nothing at all came in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whatever its status."""

    status: int
    body: bytes
    reason: str = ""

    def complaint(self) -> str:
        """Return the status and what the backend says about it, in one line."""
        found = _SUMMARY.search(self.body[:10_000].decode("utf-8", "replace"))
        return f"{self.status}: {(found.group(1) if found else self.reason)[:200]}"


class Client:
    """A client of one backend.

    An answer larger than OBS_PAGE_LIMIT_BYTES is not read to its end, and one that takes longer
    than OBS_TIMEOUT_SECONDS is given up. No redirects are followed and no proxy variables are
    read: a backend is a neighbour.
    """

    def __init__(self, url: str) -> None:
        self.where = urlsplit(url).netloc.rpartition("@")[2]
        self._seconds: float = settings.OBS_TIMEOUT_SECONDS
        self._most: int = settings.OBS_PAGE_LIMIT_BYTES
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"Accept-Encoding": "identity", "User-Agent": "tailrace"},
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        *,
        silence: float | None = None,
    ) -> Answer:
        """Send one request and return its answer; raise BackendError if none came whole.

        `silence` is the time for which nothing at all may come, in seconds (None: as long as the
        answer may take); Silence is raised then.
        """
        patience = self._seconds if silence is None else silence
        timeout = httpx.Timeout(patience, connect=min(CONNECT_SECONDS, self._seconds))
        received = bytearray()
        try:
            with self._http.stream(method, path, params=query, timeout=timeout) as response:
                self._receive(response, received)
        except httpx.ReadTimeout:
            if received:
                raise BackendError(f"{self.where} stopped in the middle of an answer") from None
            raise Silence(f"{self.where} sent nothing for {patience:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            why = str(error) or "no reason given"
            raise BackendError(f"{self.where}: {why} ({type(error).__name__})") from None
        return Answer(response.status_code, bytes(received), response.reason_phrase)

    def _receive(self, response: httpx.Response, received: bytearray) -> None:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise BackendError(f"{self.where} compressed its answer without being asked to")
        until = time.monotonic() + self._seconds
        for chunk in response.iter_raw():
            received += chunk
            if len(received) > self._most:
                raise BackendError(
                    f"{self.where} sent more than {self._most} bytes (OBS_PAGE_LIMIT_BYTES);"
                    " the rest was not read"
                )
            if time.monotonic() > until:
                raise BackendError(f"{self.where} was still sending after {self._seconds:g} s")
