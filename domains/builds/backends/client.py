"""An HTTP client for one backend, with limits on time and size, and the backend's breaker."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import ClassVar, Self
from urllib.parse import urlsplit

import httpx
from django.conf import settings

from tailrace.jobs.destinations import breaker
from tailrace.jobs.destinations.delivery import (
    SENT,
    DeliveryResult,
    DeliveryStatus,
    update_breaker,
    with_jitter,
)
from tailrace.jobs.handler import Retry, Snooze

CONNECT_SECONDS = 5.0
MAX_ERROR_BYTES = 10_000
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)

Query = Mapping[str, str | int]


class BackendError(Exception):
    """The request failed. The message is meant for operators and contains no credentials."""


class Refused(BackendError):
    """The backend answered with an error status."""


class NotFound(Refused):
    """The backend answered 404."""


class ServerError(Refused):
    """The backend answered 5xx."""


class Unreachable(BackendError):
    """The backend could not be reached, or did not send a complete answer in time."""


class NoAnswer(Unreachable):
    """The backend sent no data before the timeout."""


class NotTried(BackendError):
    """The request was not sent: the backend's circuit breaker is open for `wait` more seconds."""

    def __init__(self, reason: str, wait: float) -> None:
        super().__init__(reason)
        self.wait = wait


def outcome_of(backend: str, error: BackendError) -> Retry | Snooze:
    """Return the outcome of a job whose request failed: a retry, or a snooze if it was not sent."""
    if isinstance(error, NotTried):
        return Snooze(str(error), seconds=with_jitter(error.wait))
    return Retry(f"backend {backend}: {error}")


def breaker_name(backend: str) -> str:
    """Return the name of the circuit breaker of the requests to this backend."""
    return f"builds.backend:{backend}"


class Answer:
    """The body of an answer. It must be complete `seconds` after the start or the last `extend`."""

    def __init__(self, host: str, response: httpx.Response, seconds: float) -> None:
        self.received = 0
        self._host = host
        self._response = response
        self._seconds = seconds
        self.extend()

    def extend(self) -> None:
        """Restart the time limit, with the full number of seconds."""
        self._deadline = time.monotonic() + self._seconds

    def chunks(self, *, check_time: bool = True) -> Iterator[bytes]:
        """Yield the body in pieces. Raise Unreachable after the time limit, if `check_time`."""
        if self._response.headers.get("Content-Encoding", "identity") != "identity":
            raise BackendError(f"{self._host} compressed its answer, which was not requested")
        for chunk in self._response.iter_raw():
            self.received += len(chunk)
            yield chunk
            if check_time:
                self.check_time()

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def check_time(self) -> None:
        """Raise Unreachable if the time limit is over."""
        if self.is_late:
            raise Unreachable(f"{self._host} was still sending after {self._seconds:g} s")


class BackendClient:
    """A client of one backend; use it as a context manager. All calls raise BackendError.

    The client stops reading an answer that is larger than `max_bytes` (default:
    OBS_PAGE_LIMIT_BYTES) or takes longer than `seconds` (default: OBS_TIMEOUT_SECONDS). While the
    circuit breaker of the backend is open, all requests of all jobs to it raise `NotTried`.
    Redirects are not followed and proxy variables are not read: a backend is in the same network.
    """

    short_seconds: ClassVar[float] = 5.0
    """Time limit of a probe, and of a request for the metadata of a project or package."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        seconds: float | None = None,
        max_bytes: int | None = None,
        breaker: str = "",
    ) -> None:
        """`breaker` is the name of a circuit breaker to use instead of the backend's own."""
        self.name = name
        self._breaker = breaker or breaker_name(name)
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._seconds: float = seconds or settings.OBS_TIMEOUT_SECONDS
        self._max_bytes: int = max_bytes or settings.OBS_PAGE_LIMIT_BYTES
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"Accept-Encoding": "identity", "User-Agent": "tailrace"},
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def get(self, path: str, query: Query | None = None, *, seconds: float | None = None) -> bytes:
        """Return the body of `path`, which must be complete after `seconds` (None: the client's
        time limit). Raise NotFound for a 404, and NoAnswer if the backend sends no data."""
        return self._request("GET", path, query, seconds)

    def delete(self, path: str) -> None:
        """Delete `path`. Raise NotFound for a 404, and Refused for other errors."""
        self._request("DELETE", path, None, None)

    def _request(self, method: str, path: str, query: Query | None, seconds: float | None) -> bytes:
        received = bytearray()
        with self._exchange(method, path, query, seconds) as answer:
            for chunk in answer.chunks():
                received += chunk
                if len(received) > self._max_bytes:
                    raise BackendError(
                        f"{self.host} sent more than {self._max_bytes} bytes"
                        " (OBS_PAGE_LIMIT_BYTES); the rest was not read"
                    )
        return bytes(received)

    @contextmanager
    def _exchange(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        seconds: float | None = None,
    ) -> Iterator[Answer]:
        """Send a request and yield its answer, of status 200, to be read within the block. Raises
        Unreachable if it is not complete after `seconds` (None: the client's time limit)."""
        state = breaker.check(self._breaker)
        if state.wait:
            raise NotTried(f"the circuit breaker {self._breaker} is open", state.wait)
        try:
            if state.probe:
                self._probe()
            with self._open(method, path, query, seconds) as answer:
                yield answer
        except (BackendError, ValueError, GeneratorExit) as error:
            update_breaker(self._breaker, state, [_breaker_result(error)])
            raise
        update_breaker(self._breaker, state, [SENT])

    def _probe(self) -> None:
        """Test the backend of a half-open breaker with a cheap request and a short time limit,
        before a request that may take long. Any answer, errors included, passes the test."""
        seconds = self.short_seconds
        if seconds < self._seconds:
            open_log = self._open("GET", "/lastnotifications", {"noprune": 1}, seconds, seconds)
            with suppress(Refused), open_log:
                pass

    @contextmanager
    def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        seconds: float | None,
        silence: float | None = None,
    ) -> Iterator[Answer]:
        """Send a request. Raises NoAnswer if no data arrives for `silence` seconds."""
        silence = self._seconds if silence is None else silence
        timeout = httpx.Timeout(silence, connect=min(CONNECT_SECONDS, self._seconds))
        answer: Answer | None = None
        try:
            with self._http.stream(method, path, params=query, timeout=timeout) as response:
                answer = Answer(self.host, response, seconds or self._seconds)
                self._check_status(response, answer)
                yield answer
        except httpx.ReadTimeout:
            if answer is not None and answer.received:
                raise Unreachable(f"{self.host} stopped in the middle of an answer") from None
            raise NoAnswer(f"{self.host} sent nothing for {silence:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            reason = str(error) or "no reason given"
            raise Unreachable(f"{self.host}: {reason} ({type(error).__name__})") from None

    def _check_status(self, response: httpx.Response, answer: Answer) -> None:
        status = response.status_code
        if status == 200:
            return
        body = b""
        for chunk in answer.chunks():
            body += chunk
            if len(body) > MAX_ERROR_BYTES:
                break
        summary = _SUMMARY.search(body[:MAX_ERROR_BYTES].decode("utf-8", "replace"))
        reason = (summary.group(1) if summary else response.reason_phrase)[:200]
        kind = NotFound if status == 404 else ServerError if status >= 500 else Refused
        raise kind(f"{self.host} answered {status}: {reason}")


def _breaker_result(error: BaseException) -> DeliveryResult:
    """Return the result for the backend's breaker. A 404, for example, counts as a success."""
    if isinstance(error, Unreachable):
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, str(error))
    if isinstance(error, ServerError):
        return DeliveryResult(DeliveryStatus.FAILED, str(error))
    return SENT
