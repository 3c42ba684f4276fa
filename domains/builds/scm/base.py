"""The base class of providers, and what they send."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel

from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus
from tailrace.net.http_client import Reply, Request
from tailrace.net.sanitize import one_line

State = Literal["pending", "success", "failure"]


class CommitStatus(BaseModel):
    """The status of one build or request, at one commit of one repository."""

    host: str
    path: str
    """`owner/repository`."""
    commit: str
    state: State
    context: str
    """What the status is about. A later one of the same context replaces it."""
    target_url: str = ""
    """Where a person reads more; empty: nowhere."""
    encrypted: bool = True

    @property
    def base_url(self) -> str:
        return f"{'https' if self.encrypted else 'http'}://{self.host}"

    @property
    def key(self) -> str:
        """What a later status replaces."""
        return f"{self.host}/{self.path}@{self.commit} {self.context}"


@dataclass(frozen=True, slots=True)
class Post:
    """A request of a provider's API."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    def request(self) -> Request:
        headers = {"accept": "application/json", "content-type": "application/json"}
        return Request(self.url, {**headers, **self.headers}, json.dumps(self.body).encode())


class Provider:
    """One kind of API. A subclass says how a status is written in it."""

    name: ClassVar[str] = ""
    """As in SCM_PROVIDERS."""
    hosts: ClassVar[tuple[str, ...]] = ()
    """Well-known hosts that need no entry in SCM_PROVIDERS."""

    def post(self, status: CommitStatus, token: str) -> Post:
        """Return the request that sets the status."""
        raise NotImplementedError

    def result_of(self, status: CommitStatus, reply: Reply) -> DeliveryResult:
        """Return what a reply means. 408, 429, 5xx and rate limits are tried again."""
        code, host = reply.status, status.host
        if code is None or reply.error:
            return DeliveryResult(DeliveryStatus.UNAVAILABLE, f"{host}: {reply.error}")
        if 200 <= code < 300:
            return DeliveryResult(DeliveryStatus.SENT, result={"status": code})
        if code in (408, 429) or code >= 500 or (code == 403 and _is_rate_limit(reply)):
            after = reply.retry_after or (RATE_LIMIT_SECONDS if code in (403, 429) else None)
            return DeliveryResult(DeliveryStatus.FAILED, f"{host} answered {code}", after)
        return DeliveryResult(DeliveryStatus.REJECTED, f"{host}: {_reason(code, reply)}")


RATE_LIMIT_SECONDS = 60.0
"""The wait of a host that limits requests without saying for how long."""
_HINTS = {
    401: "the token was refused (see SCM_TOKENS)",
    403: "the token may not set statuses there",
    404: "there is no such repository or commit, or the token may not see it",
}


def _reason(code: int, reply: Reply) -> str:
    if code in _HINTS:
        return f"answered {code}: {_HINTS[code]}"
    if 300 <= code < 400:
        return f"answered {code}: redirects are not followed; the repository has another address"
    return one_line(f"answered {code}: {reply.text}")[:200]


def _is_rate_limit(reply: Reply) -> bool:
    """Return whether a 403 is that of GitHub's limits (Best practices for using the REST API)."""
    return reply.retry_after is not None or "rate limit" in reply.text.lower()
