from tailrace.domains.builds.destinations.scm.base import CommitStatus, Post, Provider


class Gitea(Provider):
    """POST /api/v1/repos/OWNER/REPO/statuses/SHA, also for Forgejo. See
    https://gitea.com/api/swagger#/repository/repoCreateStatus."""

    name = "gitea"
    hosts = ("gitea.com", "codeberg.org", "src.opensuse.org")

    def post(self, status: CommitStatus, token: str) -> Post:
        url = f"{status.base_url}/api/v1/repos/{status.path}/statuses/{status.commit}"
        return Post(url, {"authorization": f"token {token}"}, self.body(status))
