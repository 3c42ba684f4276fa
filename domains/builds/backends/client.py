"""An HTTP client for one backend, with limits on time and size."""

import re
import time
from collections.abc import Mapping
from typing import Self
from urllib.parse import urlsplit

import httpx
from django.conf import settings

CONNECT_SECONDS = 5.0
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)

Query = Mapping[str, str | int]


class BackendError(Exception):
    """The request failed. The message is for operators and contains no credentials."""


class NotFound(BackendError):
    """The backend answered 404."""


class NoAnswer(BackendError):
    """The backend sent nothing at all within the time allowed."""


class BackendClient:
    """A client of one backend; use it as a context manager. All calls raise BackendError.

    An answer larger than OBS_PAGE_LIMIT_BYTES, or slower than OBS_TIMEOUT_SECONDS, is abandoned.
    Redirects are not followed and proxy variables are not read: a backend is in the same network.
    """

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._seconds: float = settings.OBS_TIMEOUT_SECONDS
        self._max_bytes: int = settings.OBS_PAGE_LIMIT_BYTES
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"Accept-Encoding": "identity", "User-Agent": "tailrace"},
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def get(self, path: str, query: Query | None = None, *, silence: float | None = None) -> bytes:
        """Return the body of `path`. Raise NotFound for a 404, and NoAnswer if nothing at all
        comes for `silence` seconds (None: OBS_TIMEOUT_SECONDS)."""
        return self._request("GET", path, query, silence)

    def delete(self, path: str) -> None:
        """Delete `path`. Raise NotFound for a 404."""
        self._request("DELETE", path, None, None)

    def _request(self, method: str, path: str, query: Query | None, silence: float | None) -> bytes:
        silence = self._seconds if silence is None else silence
        timeout = httpx.Timeout(silence, connect=min(CONNECT_SECONDS, self._seconds))
        received = bytearray()
        try:
            with self._http.stream(method, path, params=query, timeout=timeout) as response:
                self._receive(response, received)
        except httpx.ReadTimeout:
            if received:
                raise BackendError(f"{self.host} stopped in the middle of an answer") from None
            raise NoAnswer(f"{self.host} sent nothing for {silence:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            reason = str(error) or "no reason given"
            raise BackendError(f"{self.host}: {reason} ({type(error).__name__})") from None
        status, body = response.status_code, bytes(received)
        if status != 200:
            summary = _SUMMARY.search(body[:10_000].decode("utf-8", "replace"))
            reason = (summary.group(1) if summary else response.reason_phrase)[:200]
            kind = NotFound if status == 404 else BackendError
            raise kind(f"{self.host} answered {status}: {reason}")
        return body

    def _receive(self, response: httpx.Response, received: bytearray) -> None:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise BackendError(f"{self.host} compressed its answer without being asked to")
        deadline = time.monotonic() + self._seconds
        for chunk in response.iter_raw():
            received += chunk
            if len(received) > self._max_bytes:
                raise BackendError(
                    f"{self.host} sent more than {self._max_bytes} bytes (OBS_PAGE_LIMIT_BYTES);"
                    " the rest was not read"
                )
            if time.monotonic() > deadline:
                raise BackendError(f"{self.host} was still sending after {self._seconds:g} s")
