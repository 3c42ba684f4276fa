"""A provider that is queried over HTTP, its answers, and the errors of a query."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_BYTES = 4_000_000
"""Limit for an answer; a longer one is an error."""


@dataclass(frozen=True, slots=True)
class Provider:
    """The URL of a provider, and its limits."""

    name: str
    """The name of its breaker is `protection:<name>`, of its budget `protection:<name>:rate`."""
    url: str
    """Without a slash at the end."""
    per_second: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_bytes: int = MAX_BYTES

    @property
    def key(self) -> str:
        return f"protection:{self.name}"

    @property
    def budget(self) -> str:
        """The name of its token bucket."""
        return f"{self.key}:rate"


@dataclass(frozen=True, slots=True)
class Answer:
    """A provider's answer, with the status 200, 202, 304 or 404."""

    status: int
    headers: Mapping[str, str]
    """The headers by name in lower case."""
    body: bytes = field(repr=False)
    provider: str

    def json(self) -> Any:
        """Return the parsed body. Raises SourceAway if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise SourceAway(self.provider, "answered with something that is not JSON") from None


class SourceAway(Exception):
    """The provider cannot answer now: it is unavailable, overloaded, or answers nonsense."""

    def __init__(
        self, provider: str, reason: str, after: float | None = None, *, was_asked: bool = True
    ) -> None:
        super().__init__(f"{provider}: {reason}")
        self.provider, self.reason = provider, reason
        self.after = after
        """Seconds until it may be queried again, or None if that is unknown."""
        self.was_asked = was_asked
        """False if no request was sent because the circuit breaker was open."""


class SourceBusy(Exception):
    """The provider's rate limit allowed no request in time. This is no error, and no request was
    sent."""

    def __init__(self, provider: str, after: float) -> None:
        super().__init__(f"{provider}: its rate limit is used up")
        self.provider, self.after = provider, after


class SourceRefuses(Exception):
    """The provider refuses a request. With 401 or 403 the settings are wrong, and an operator has
    to change them; with 400 the provider does not accept this one value."""

    def __init__(self, provider: str, reason: str, status: int = 0) -> None:
        super().__init__(f"{provider}: {reason}")
        self.provider, self.reason, self.status = provider, reason, status
