"""A provider that is asked over HTTP, its answers, and the errors of asking it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_BYTES = 4_000_000
"""Of an answer; a longer one is refused."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider answers, and how much it may be asked."""

    name: str
    """Its breaker and its budget are called `protection:<name>`."""
    url: str
    """Without a slash at its end."""
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
    """What a provider answered: 200, 202, 304 or 404."""

    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes = field(repr=False)
    provider: str

    def json(self) -> Any:
        """Return the document; SourceAway if it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise SourceAway(self.provider, "answered with something that is not JSON") from None


class SourceAway(Exception):
    """The provider cannot answer now: it is away, too busy, or answers nonsense."""

    def __init__(
        self, provider: str, reason: str, after: float | None = None, *, was_asked: bool = True
    ) -> None:
        super().__init__(f"{provider}: {reason}")
        self.provider, self.reason = provider, reason
        self.after = after
        """Seconds until it may be asked again, if it is known."""
        self.was_asked = was_asked
        """False if nothing was sent, since its circuit breaker was open."""


class SourceBusy(Exception):
    """The provider's rate limit left no place in time: nothing is wrong, and nothing was asked."""

    def __init__(self, provider: str, after: float) -> None:
        super().__init__(f"{provider}: its rate limit is used up")
        self.provider, self.after = provider, after


class SourceRefuses(Exception):
    """The provider refuses what we ask: its settings are wrong (401, 403), and an operator has to
    act, or it does not take this one value (400)."""

    def __init__(self, provider: str, reason: str, status: int = 0) -> None:
        super().__init__(f"{provider}: {reason}")
        self.provider, self.reason, self.status = provider, reason, status
