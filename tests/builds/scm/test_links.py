"""The repository that a package's `<scmsync>` names, and the provider of its host."""

import pytest
from django.core.checks import run_checks

from tailrace.domains.builds.destinations.scm.base import CommitStatus
from tailrace.domains.builds.destinations.scm.links import NoLink, ScmLink, scm_link
from tailrace.domains.builds.destinations.scm.providers import provider_of, providers
from tailrace.domains.builds.settings import BuildsSettings
from tailrace.environment.types import ByHost
from tests.servers.scm import COMMIT

SHA256 = "a" * 64


@pytest.mark.parametrize(
    ("scmsync", "link"),
    [
        ("https://github.com/foo/bar", ScmLink("github.com", "foo/bar")),
        ("https://GitHub.com/foo/it.git?subdir=rpm#main", ScmLink("github.com", "foo/it", "main")),
        (f"https://git.example.org:99/a/b#{COMMIT}", ScmLink("git.example.org:99", "a/b", COMMIT)),
        ("https://gitlab.com/group/sub.group/it/", ScmLink("gitlab.com", "group/sub.group/it")),
        ("https://user:secret@github.com/a/b", ScmLink("github.com", "a/b")),
        ("http://127.0.0.1:8080/a/b", ScmLink("127.0.0.1:8080", "a/b", encrypted=False)),
        ("https://[2001:DB8::1]:3000/a/b", ScmLink("[2001:db8::1]:3000", "a/b")),
    ],
)  # fmt: skip
def test_a_link_names_host_and_repository(scmsync: str, link: ScmLink) -> None:
    assert scm_link(scmsync) == link


def test_a_link_may_name_the_commit() -> None:
    assert scm_link(f"https://github.com/a/b#{COMMIT}").commit == COMMIT
    assert scm_link(f"https://github.com/a/b#{SHA256}").commit == SHA256
    assert scm_link("https://github.com/a/b#main").commit == ""


@pytest.mark.parametrize(
    "scmsync",
    ["", "git@github.com:foo/bar", "ssh://git@github.com/a/b", "file:///etc/passwd",
     "http://github.com/a/b", "https:///a/b", "https://github.com/a", "https://github.com/a/../b/c",
     "https://github.com/a/b%2f..%2fc", "https://github.com/a b/c", "https://github.com:x/a/b",
     "https://github.com/" + "a/" * 50, "https://[::1/a/b"],
)  # fmt: skip
def test_what_is_no_link_says_why(scmsync: str) -> None:
    with pytest.raises(NoLink, match="SCM link"):
        scm_link(scmsync)


def test_providers_are_found_by_themselves(settings) -> None:
    assert list(providers()) == ["gitea", "github", "gitlab"]
    assert provider_of("github.com").name == "github"
    assert provider_of("src.opensuse.org").name == "gitea"
    assert provider_of("git.example.org") is None
    settings.SCM_PROVIDERS = {"git.example.org": "gitlab", "github.com": "gitea"}
    assert provider_of("git.example.org").name == "gitlab"
    assert provider_of("github.com").name == "gitea"


def test_the_api_of_github_com_has_a_host_of_its_own() -> None:
    status = CommitStatus(
        host="github.com", path="a/b", commit=COMMIT, state="success", context="x"
    )
    assert providers()["github"].post(status, "t").url == (
        f"https://api.github.com/repos/a/b/statuses/{COMMIT}"
    )
    own = status.model_copy(update={"host": "ghe.example.org"})
    assert providers()["github"].post(own, "t").url == (
        f"https://ghe.example.org/api/v3/repos/a/b/statuses/{COMMIT}"
    )


def test_tokens_are_read_by_host() -> None:
    assert ByHost().read("GitHub.com=abc=def, git.example.org:3000=x,[::1]:80=y") == {
        "github.com": "abc=def",
        "git.example.org:3000": "x",
        "[::1]:80": "y",
    }


def test_wrong_tokens_are_named_without_showing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCM_TOKENS", "github.com=good,s3cret,https://x/=s3cret,github.com=s3cret")
    settings, problems = BuildsSettings.load()
    assert settings.SCM_TOKENS == {}
    assert [str(problem) for problem in problems] == [
        "SCM_TOKENS: entry 2 of 4 is not host=text, such as git.example.org=…",
        "SCM_TOKENS: entry 3 of 4 is not host=text, such as git.example.org=…",
        "SCM_TOKENS: entry 4 of 4 names the same host as an earlier entry",
    ]


def test_start_up_checks_hosts_and_providers(settings) -> None:
    settings.SCM_TOKENS = {"git.example.org": "bad token\n", "github.com": "fine"}
    settings.SCM_PROVIDERS = {"git.example.net": "gitae"}
    settings.SCM_TAKES_HIDDEN = ["github.con"]
    messages = {error.id: error.msg for error in run_checks(tags=["builds"])}
    assert "unknown provider 'gitae'; did you mean 'gitea'?" in messages["tailrace_builds.E007"]
    assert "has no provider for git.example.org" in messages["tailrace_builds.E008"]
    assert "git.example.org" in messages["tailrace_builds.E009"]
    assert "bad token" not in str(messages)
    assert "did you mean 'github.com'?" in messages["tailrace_builds.E011"]
    settings.SCM_TOKENS = {"github.com": "fine"}
    settings.SCM_PROVIDERS = {}
    settings.SCM_TAKES_HIDDEN = ["github.com"]
    assert run_checks(tags=["builds"]) == []
