"""Hosts that take statuses of commits as GitHub, GitLab and Gitea do: paths, logins, replies."""

import json
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.servers.web import ReceivedRequest, Response, serving

TOKEN = "scm-t0ken-of-the-tests"
COMMIT = "9bfe30f7297eec618269c290998873680123abcd"


@dataclass(frozen=True)
class Api:
    """How one kind of host is spoken to."""

    path: str
    """With the groups `repository` and `commit`."""
    login: tuple[str, str]
    """Name and value of the header."""
    states: tuple[str, ...]
    label: str
    """The key of the status's context."""
    unknown_commit: int
    """The reply's status if the repository has no such commit."""


APIS = {
    "github": Api(
        r"/api/v3/repos/(?P<repository>[^/]+/[^/]+)/statuses/(?P<commit>[^/]+)",
        ("authorization", f"Bearer {TOKEN}"),
        ("error", "failure", "pending", "success"),
        "context",
        422,
    ),
    "gitlab": Api(
        r"/api/v4/projects/(?P<repository>[^/]+)/statuses/(?P<commit>[^/]+)",
        ("private-token", TOKEN),
        ("pending", "running", "success", "failed", "canceled"),
        "name",
        404,
    ),
    "gitea": Api(
        r"/api/v1/repos/(?P<repository>[^/]+/[^/]+)/statuses/(?P<commit>[^/]+)",
        ("authorization", f"token {TOKEN}"),
        ("pending", "success", "error", "failure", "warning"),
        "context",
        404,
    ),
}


@dataclass
class ScmHost:
    """A host with one repository of one commit, and its statuses by context."""

    api: Api
    name: str = ""
    repository: str = "alice/hello"
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: deque[Response] = field(default_factory=deque)
    """Replies to the next requests, instead of the right ones."""
    requests: list[ReceivedRequest] = field(default_factory=list)

    @property
    def link(self) -> str:
        """The `<scmsync>` of a package whose sources are the repository."""
        return f"http://{self.name}/{self.repository}.git?subdir=rpm#main"

    def respond(self, request: ReceivedRequest) -> Response:
        self.requests.append(request)
        if self.faults:
            return self.faults.popleft()
        header, value = self.api.login
        if request.headers.get(header) != value:
            return _json(401, {"message": "Bad credentials"})
        match = re.fullmatch(self.api.path, request.path)
        if request.method != "POST" or match is None:
            return _json(404, {"message": "Not Found"})
        if unquote(match["repository"]) != self.repository:
            return _json(404, {"message": "Not Found"})
        if match["commit"] != COMMIT:
            message = {"message": f"No commit found for SHA: {match['commit']}"}
            return _json(self.api.unknown_commit, message)
        return self._set(json.loads(request.body))

    def _set(self, status: dict[str, Any]) -> Response:
        if status.get("state") not in self.api.states:
            return _json(422, {"message": "Validation Failed"})
        context = status[self.api.label]
        before = self.statuses.get(context, {}).get("state")
        if self.api is APIS["gitlab"] and before == status["state"]:
            event = {"success": "succeed", "failed": "drop", "pending": "enqueue"}[before]
            message = f"Cannot transition status via :{event} from :{before} (Reason(s): …)"
            return _json(400, {"message": message})
        self.statuses[context] = status
        return _json(201, {"id": 1, **status})


def _json(status: int, body: dict[str, Any]) -> Response:
    return Response(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


@contextmanager
def scm_host(kind: str) -> Iterator[ScmHost]:
    """Run a host of that kind until the block ends."""
    host = ScmHost(APIS[kind])
    with serving(host.respond) as server:
        host.name = f"127.0.0.1:{server.server_port}"
        yield host
