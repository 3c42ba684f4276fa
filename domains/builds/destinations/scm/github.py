from tailrace.domains.builds.destinations.scm.base import CommitStatus, Post, Provider


class GitHub(Provider):
    """POST /repos/OWNER/REPO/statuses/SHA. See https://docs.github.com/en/rest/commits/statuses.

    The API of github.com is at api.github.com, of a GitHub Enterprise host below /api/v3.
    """

    name = "github"
    hosts = ("github.com",)

    def post(self, status: CommitStatus, token: str) -> Post:
        is_public = status.host == "github.com"
        base = "https://api.github.com" if is_public else f"{status.base_url}/api/v3"
        headers = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {token}",
            "x-github-api-version": "2022-11-28",
        }
        url = f"{base}/repos/{status.path}/statuses/{status.commit}"
        return Post(url, headers, self.body(status))
