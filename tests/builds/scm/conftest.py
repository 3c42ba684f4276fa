"""A backend with a package whose sources are in a repository of a host."""

from collections.abc import Callable, Iterator

import pytest

from tailrace.domains.builds.destinations.scm import built_commits
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.models import Job
from tests.servers.scm import COMMIT, TOKEN, ScmHost, scm_host
from tests.servers.source import Source, source
from tests.servers.web import Response

MD5 = "d41d8cd98f00b204e9800998ecf8427e"
QUEUES = ("builds.report_to_scm", "builds.update_backend_infos", "builds.send_scm_status")


@pytest.fixture
def server(settings) -> Iterator[Source]:
    built_commits._read_commit.cache_clear()  # a server before may have had the same port
    with source() as server:
        settings.OBS_BACKENDS = {"main": server.url}
        settings.OBS_WEB_URL = "https://build.example.org/"
        yield server


@pytest.fixture(params=["github"])
def host(request, settings, server: Source) -> Iterator[ScmHost]:
    """A host with the sources of home:alice/hello, of the kind of the parameter."""
    with scm_host(request.param) as host:
        settings.SCM_TOKENS = {host.name: TOKEN}
        settings.SCM_PROVIDERS = {host.name: request.param}
        linked(server, host.link)
        yield host


def linked(server: Source, scmsync: str, commit: str = COMMIT) -> None:
    """Have the package hello, with a link and with the commit in its sources."""
    server.package("hello", MD5, people=f"<scmsync>{scmsync}</scmsync>")
    obsinfo = f"mtime: 1713949992\ncommit: {commit}\nurl: {scmsync}\n".encode()
    server.pages[f"/source/home:alice/hello/_scmsync.obsinfo?rev={MD5}"] = Response(200, obsinfo)


def built(type: str = "build_fail", source: str = "obs:main:1", **more: str) -> Recorded:
    """Publish the result of a build of home:alice/hello."""
    payload = {
        "project": "home:alice", "package": "hello", "repository": "standard", "arch": "x86_64",
        "srcmd5": MD5, "rev": "2", **more,
    }  # fmt: skip
    return publish([NewEvent(f"builds.{type}", payload, source=source)])[0]


@pytest.fixture
def report(run_jobs: Callable, clock) -> Callable[..., Job]:
    """Run what an event causes; return its job that reports."""

    def run(event: Recorded, rounds: int = 4) -> Job:
        for _ in range(rounds):
            run_jobs(*QUEUES)
            clock.step(5)
        return Job.objects.get(event=event.id, handler="builds.report_to_scm")

    return run


def sending(event: Recorded) -> Job:
    """Return the job that sends the status of the event."""
    return Job.objects.get(event=event.id, handler="builds.send_scm_status")
