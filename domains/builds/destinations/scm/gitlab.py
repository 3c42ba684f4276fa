import re
from urllib.parse import quote

from tailrace.domains.builds.destinations.scm.base import CommitStatus, Post, Provider
from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus
from tailrace.net.http_client import Reply

_REFUSED_TRANSITION = re.compile(r"Cannot transition status via :\w+ from :(\w+)")


class GitLab(Provider):
    """POST /api/v4/projects/PATH/statuses/SHA, with the path as one segment. See
    https://docs.gitlab.com/api/commits/#set-commit-pipeline-status.

    GitLab's name for a failure is `failed`. If the commit already has the status, GitLab refuses to
    set it (400 "Cannot transition status via :succeed from :success"); this counts as sent.
    """

    name = "gitlab"
    hosts = ("gitlab.com",)

    def post(self, status: CommitStatus, token: str) -> Post:
        project = quote(status.path, safe="")
        body = {**self.body(status), "state": _state(status)}
        body["name"] = body.pop("context")
        url = f"{status.base_url}/api/v4/projects/{project}/statuses/{status.commit}"
        return Post(url, {"private-token": token}, body)

    def result_of(self, status: CommitStatus, reply: Reply) -> DeliveryResult:
        refused = _REFUSED_TRANSITION.search(reply.text) if reply.status == 400 else None
        if refused and refused[1] == _state(status):
            return DeliveryResult(DeliveryStatus.SENT, result={"status": 400, "unchanged": True})
        return super().result_of(status, reply)


def _state(status: CommitStatus) -> str:
    return "failed" if status.state == "failure" else status.state
