"""The base class of providers, and the statuses and requests that they send."""

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
    """The status of one build or request, for one commit of one repository."""

    host: str
    path: str
    """`owner/repository`."""
    commit: str
    state: State
    context: str
    """The subject of the status. A later status of the same context replaces this one."""
    target_url: str = ""
    """The page with more information; empty if there is none."""
    encrypted: bool = True

    @property
    def base_url(self) -> str:
        return f"{'https' if self.encrypted else 'http'}://{self.host}"

    @property
    def key(self) -> str:
        """The unique key of the job: a later status with the same key replaces this one."""
        return f"{self.host}/{self.path}@{self.commit} {self.context}"


@dataclass(frozen=True, slots=True)
class Post:
    """A POST request for a provider's API."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    def request(self) -> Request:
        headers = {"accept": "application/json", "content-type": "application/json"}
        return Request(self.url, {**headers, **self.headers}, json.dumps(self.body).encode())


class Provider:
    """One kind of API. A subclass formats statuses for it."""

    name: ClassVar[str] = ""
    """The provider's name in SCM_PROVIDERS."""
    hosts: ClassVar[tuple[str, ...]] = ()
    """Well-known hosts that need no entry in SCM_PROVIDERS."""

    def post(self, status: CommitStatus, token: str) -> Post:
        """Return the request that sets the status."""
        raise NotImplementedError

    def body(self, status: CommitStatus) -> dict[str, str]:
        """Return the body of the request, as most APIs have it."""
        target = {"target_url": status.target_url} if status.target_url else {}
        return {"state": status.state, "context": status.context, **target}

    def result_of(self, status: CommitStatus, reply: Reply) -> DeliveryResult:
        """Return the result of a delivery. 408, 429, 5xx and rate limits are retried."""
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
"""The wait after a rate limit if the host does not send the number of seconds."""
_HINTS = {
    401: "the token was refused (see SCM_TOKENS)",
    403: "the token is not allowed to set statuses in this repository",
    404: "the repository or commit does not exist, or the token has no access to it",
}


def _reason(code: int, reply: Reply) -> str:
    if code in _HINTS:
        return f"answered {code}: {_HINTS[code]}"
    if 300 <= code < 400:
        return f"answered {code}: redirects are not followed; the repository has another URL"
    return one_line(f"answered {code}: {reply.text}")[:200]


def _is_rate_limit(reply: Reply) -> bool:
    """Return whether a 403 is due to GitHub's rate limits (Best practices for the REST API)."""
    return reply.retry_after is not None or "rate limit" in reply.text.lower()
