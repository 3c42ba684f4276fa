"""From the result of a build to the status of the commit that was built."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from tailrace.domains.builds.backends.names import PackageRef
from tailrace.domains.builds.destinations.scm.built_commits import built_commit
from tailrace.domains.builds.destinations.scm.reports import reports
from tailrace.domains.builds.models import Package, Project
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tests.builds.scm.conftest import MD5, built, linked, sending
from tests.servers.scm import COMMIT, ScmHost
from tests.servers.source import Source
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)
ALL = pytest.mark.parametrize("host", ["github", "gitlab", "gitea"], indirect=True)
CONTEXT = "OBS: hello - standard/x86_64"


@ALL
def test_a_build_sets_the_status_of_its_commit(host: ScmHost, report: Callable) -> None:
    built("build_success", arch="i586")
    event = built()
    job = report(event)
    assert (job.state, job.error) == ("completed", "")
    assert job.result["reported_to"] == [f"{host.name}/alice/hello@{COMMIT}"]
    assert sending(event).state == "completed"
    assert host.statuses.pop("OBS: hello - standard/i586")["state"] == "success"
    assert host.statuses == {
        CONTEXT: {
            "state": "failed" if host.api.label == "name" else "failure",
            host.api.label: CONTEXT,
            "target_url": "https://build.example.org/package/show/home%3Aalice/hello",
        }
    }


def test_each_repository_has_a_status_of_its_own_and_the_commit_is_read_once(
    host: ScmHost, server: Source, report: Callable
) -> None:
    for arch in ("x86_64", "i586", "aarch64"):
        event = built(arch=arch)
    report(event)
    assert len(host.statuses) == 3
    assert len([path for path in server.requests if "obsinfo" in path]) == 1


def test_a_flavour_has_the_sources_of_its_package(host: ScmHost, report: Callable) -> None:
    assert report(built(package="hello:qt")).state == "completed"
    assert list(host.statuses) == ["OBS: hello:qt - standard/x86_64"]


def test_a_commit_in_the_link_counts_if_the_sources_do_not_say(
    host: ScmHost, server: Source, report: Callable
) -> None:
    linked(server, f"http://{host.name}/alice/hello#{COMMIT}")
    del server.pages[f"/source/home:alice/hello/_scmsync.obsinfo?rev={MD5}"]
    assert report(built()).state == "completed"
    assert CONTEXT in host.statuses


@pytest.mark.parametrize(
    ("scmsync", "reason"),
    [
        ("", "the package has no SCM link (<scmsync> in its metadata)"),
        ("https://git.example.net/a/b#main", "SCM_TOKENS has no token for git.example.net"),
        ("git@github.com:a/b", "the package's SCM link is not an https:// URL"),
    ],
)
def test_what_cannot_be_reported_is_skipped_with_the_reason(
    host: ScmHost, server: Source, report: Callable, scmsync: str, reason: str
) -> None:
    linked(server, scmsync)
    job = report(built())
    assert (job.state, job.error) == ("skipped", reason)
    assert host.requests == []


def test_without_a_commit_nothing_is_reported(
    host: ScmHost, server: Source, report: Callable
) -> None:
    page = f"/source/home:alice/hello/_scmsync.obsinfo?rev={MD5}"
    for number, body in enumerate((b"", b"url: x\n", b"commit: main\n", b"commit: \xff\n")):
        server.pages[page.replace(MD5, str(number))] = Response(200, body)
        assert built_commit("main", PackageRef("home:alice", "hello"), str(number)) == ""
    del server.pages[page]
    job = report(built())
    assert job.state == "skipped"
    assert "do not name their commit" in job.error


def test_without_tokens_there_are_no_jobs(settings, host: ScmHost) -> None:
    settings.SCM_TOKENS = {}
    event = built()
    assert not Job.objects.filter(event=event.id, handler="builds.report_to_scm").exists()


def test_a_backend_that_is_away_is_asked_again(
    host: ScmHost, server: Source, report: Callable, clock
) -> None:
    event = built()
    path = f"/source/home:alice/hello/_scmsync.obsinfo?rev={MD5}"
    answer, server.pages[path] = server.pages[path], Response(503)
    assert report(event).state == "pending"
    assert host.requests == []
    server.pages[path] = answer
    clock.step(60)
    assert report(event).state == "completed"
    assert CONTEXT in host.statuses


def test_a_link_that_comes_with_a_change_of_the_metadata_counts(
    host: ScmHost, server: Source, report: Callable
) -> None:
    linked(server, "")
    assert report(built()).state == "skipped"
    linked(server, host.link)
    names = {"project": "home:alice", "package": "hello"}
    publish(NewEvent("builds.update_package", names, source="obs:main:1"))
    assert report(built()).state == "completed"


def test_a_package_that_was_read_before_links_were_stored_is_read_again(
    host: ScmHost, report: Callable
) -> None:
    now = timezone.now()
    Project.objects.create(backend="main", name="home:alice", refreshed_at=now)
    Package.objects.create(
        backend="main", project="home:alice", name="hello", refreshed_at=now, scmsync=None
    )
    assert report(built()).state == "completed"


def test_a_login_in_the_link_is_not_stored(host: ScmHost, server: Source, report: Callable) -> None:
    linked(server, host.link.replace("http://", "http://bob:s3cret@"))
    assert report(built()).state == "completed"
    assert Package.objects.get().scmsync == host.link


# --- requests ---

ACTION = {
    "type": "submit", "sourceproject": "home:alice", "sourcepackage": "hello",
    "sourcerevision": MD5, "targetproject": "openSUSE:Factory", "targetpackage": "hello",
}  # fmt: skip


def changed(state: str, source: str = "bus:rabbit/pubsub", type: str = "request_statechange"):
    payload = {"number": 7, "author": "alice", "state": state, "actions": [ACTION, ACTION]}
    return publish([NewEvent(f"builds.{type}", payload, source=source)])[0]


def test_a_request_sets_the_status_of_its_sources(
    settings, host: ScmHost, report: Callable
) -> None:
    settings.OBS_UNKNOWN_PROJECTS = "public"
    states = {}
    for state in ("accepted", "declined", "revoked", "superseded", "review", "new"):
        [states[state]] = (each.state for each in reports(changed(state)))
    assert states == {
        "accepted": "success", "declined": "failure", "revoked": "failure",
        "superseded": "failure", "review": "pending", "new": "pending",
    }  # fmt: skip
    host.statuses.clear()
    report(changed("accepted"))
    assert host.statuses == {
        "OBS: Request 7": {
            "state": "success",
            "context": "OBS: Request 7",
            "target_url": "https://build.example.org/request/show/7",
        }
    }


def test_reviews_that_are_done_are_no_change_of_the_state(host: ScmHost) -> None:
    event = changed("review", type="request_reviews_done")
    assert not Job.objects.filter(event=event.id, handler="builds.report_to_scm").exists()
