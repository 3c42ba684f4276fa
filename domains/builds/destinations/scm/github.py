from tailrace.domains.builds.destinations.scm.base import CommitStatus, Post, Provider


class GitHub(Provider):
    """POST /repos/OWNER/REPO/statuses/SHA. See https://docs.github.com/en/rest/commits/statuses.

    The API of github.com is at api.github.com. The API of a GitHub Enterprise host is below
    /api/v3.
    """

    name = "github"
    hosts = ("github.com",)

    def post(self, status: CommitStatus, token: str) -> Post:
        base = f"{status.base_url}/api/v3"
        if status.host == "github.com":
            base = "https://api.github.com"
        body = {"state": status.state, "context": status.context}
        if status.target_url:
            body["target_url"] = status.target_url
        headers = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {token}",
            "x-github-api-version": "2022-11-28",
        }
        return Post(f"{base}/repos/{status.path}/statuses/{status.commit}", headers, body)
