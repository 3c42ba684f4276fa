"""A provider that is queried over HTTP, and its answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.jobs.destinations.request_errors import Unavailable

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
        """Return the parsed body. Raises Unavailable if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            reason = "answered with something that is not JSON"
            raise Unavailable(reason, destination=self.provider) from None
