from collections.abc import Callable, Iterator

import pytest

from tailrace.domains.builds.models import Package, PackageLink, Project, RoleHolder
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.models import Attempt, Job
from tests.servers.source import Source, source
from tests.servers.web import Response, closed_port

pytestmark = pytest.mark.django_db(transaction=True)
REFRESH = "builds.update_backend_infos"
MD5 = "9bfe30f7297eec618269c29099887368"


@pytest.fixture
def server(settings) -> Iterator[Source]:
    with source() as server:
        settings.OBS_BACKENDS = {"main": server.url}
        settings.OBS_TIMEOUT_SECONDS = 30
        yield server


def commit(package: str = "hello", source: str = "obs:main:1") -> Recorded:
    payload = {"project": "home:alice", "package": package, "rev": "2"}
    return publish([NewEvent("builds.commit", payload, source=source)])[0]


@pytest.fixture
def refresh(run_jobs: Callable, clock) -> Callable[..., None]:
    """Wait until the delay is over, then run the refreshes and those that they enqueue."""

    def work(steps: int = 1, seconds: float = 5) -> None:
        for _ in range(steps):
            clock.step(seconds)
            run_jobs(REFRESH)

    return work


def last_job() -> Job:
    return Job.objects.filter(handler=REFRESH).latest("id")


def test_a_commit_refreshes_the_package_and_its_project(server: Source, refresh: Callable) -> None:
    commit()
    refresh()
    hello = Package.objects.get(name="hello")
    assert (hello.backend, hello.project, hello.title) == ("main", "home:alice", "Hello")
    assert (hello.srcmd5, hello.verifymd5, hello.rev, hello.vrev) == (MD5, MD5, "2", "2")
    assert (hello.devel_project, hello.devel_package) == ("home:alice", "devel-hello")
    assert Project.objects.get().title == "Alice & co"
    assert set(RoleHolder.objects.values_list("package", "role", "user", "group")) == {
        ("", "maintainer", "alice", ""),
        ("", "reader", "bob", ""),
        ("", "bugowner", "", "factory-team"),
        ("hello", "bugowner", "carol", ""),
    }


def test_running_twice_changes_nothing(server: Source, refresh: Callable) -> None:
    commit()
    refresh(2)
    before = list(RoleHolder.objects.order_by("id").values())
    commit()
    refresh(2)
    assert list(RoleHolder.objects.order_by("id").values()) == before
    assert last_job().result == {"changed": False, "goes_on_to": 0}
    assert Job.objects.filter(handler=REFRESH).count() == 3, "the unknown one is requested once"
    assert Package.objects.filter(name="hello").count() == 1


def test_many_events_on_one_package_make_one_refresh(server: Source, refresh: Callable) -> None:
    for _ in range(20):
        commit()
    assert Job.objects.filter(handler=REFRESH, state="pending").count() == 1
    refresh()
    assert server.requests.count("GET /source/home:alice/hello/_meta") == 1


def test_holders_that_lost_their_role_are_removed(server: Source, refresh: Callable) -> None:
    server.package("pack", "a", people='<person userid="eve" role="maintainer" />')
    commit("pack")
    refresh()
    assert RoleHolder.objects.filter(user="eve").exists()
    server.package("pack", "b", people='<group groupid="team" role="maintainer" />')
    commit("pack")
    refresh()
    holders = RoleHolder.objects.filter(package="pack").values_list("user", "group")
    assert list(holders) == [("", "team")]


def test_packages_that_link_to_it_are_refreshed_too(server: Source, refresh: Callable) -> None:
    server.package("branch", "a", links=("hello",))
    commit("branch")
    refresh()
    server.package("branch", "b", links=("hello",), error="conflict in file x")
    commit("hello")
    refresh(2)
    branch = Package.objects.get(name="branch")
    assert (branch.srcmd5, branch.error) == ("b", "conflict in file x")


def test_a_circle_of_links_ends(server: Source, refresh: Callable) -> None:
    for round in range(3):
        for name, link in (("a", "b"), ("b", "c"), ("c", "a")):
            server.package(name, f"{name}{round}", links=(link,))
        for name in "abc":
            commit(name)
        refresh(6)
    assert not Job.objects.filter(handler=REFRESH, state="pending").exists()
    assert {package.srcmd5 for package in Package.objects.all()} == {"a2", "b2", "c2"}
    assert PackageLink.objects.count() == 3


def test_an_unknown_development_package_is_refreshed(server: Source, refresh: Callable) -> None:
    server.package("devel-hello", "d", people='<person userid="dora" role="maintainer" />')
    commit()
    refresh(2)
    assert RoleHolder.objects.filter(package="devel-hello", user="dora").exists()


def test_a_package_that_is_gone_is_marked_and_skipped(server: Source, refresh: Callable) -> None:
    server.package("pack", "a", people='<person userid="eve" role="maintainer" />')
    commit("pack")
    refresh()
    del server.pages["/source/home:alice/pack/_meta"]
    commit("pack")
    refresh()
    assert Package.objects.get().gone_at is not None
    assert not RoleHolder.objects.filter(package="pack").exists()
    assert (last_job().state, last_job().error) == (
        "skipped",
        "the package home:alice/pack no longer exists",
    )


def test_a_project_that_is_gone_is_marked_and_skipped(server: Source, refresh: Callable) -> None:
    del server.pages["/source/home:alice/_meta"]
    commit()
    refresh()
    assert not Project.objects.get(name="home:alice").exists
    assert last_job().state == "skipped"


@pytest.mark.parametrize(
    "answer",
    [
        Response(500, b"oops"),
        Response(200, b"<html><body>It works!"),
        Response(200, b'<!DOCTYPE a [<!ENTITY b "c">]><package name="hello">&b;</package>'),
        Response(200, b"<?xml version='1.0' encoding='odd'?><package name='hello'/>"),
        Response(200, b"<package name='hello'>" + b" " * 500 + b"</package>", cut=40),
    ],
    ids=["500", "html", "entities", "encoding", "cut"],
)
def test_a_bad_answer_is_tried_again_and_changes_nothing(
    server: Source, refresh: Callable, answer: Response
) -> None:
    server.pages["/source/home:alice/hello/_meta"] = answer
    commit()
    refresh()
    assert (last_job().state, last_job().attempt) == ("pending", 1)
    assert "backend main: " in Attempt.objects.get().message
    assert not Package.objects.exists()


def test_a_backend_that_is_down_is_tried_again(settings, refresh: Callable) -> None:
    settings.OBS_BACKENDS = {"main": f"http://127.0.0.1:{closed_port()}"}
    commit()
    refresh()
    assert (last_job().state, last_job().attempt) == ("pending", 1)


def test_an_event_of_an_unknown_backend_is_skipped(server: Source, refresh: Callable) -> None:
    commit(source="obs:elsewhere:3")
    refresh()
    assert last_job().error == "OBS_BACKEND_URL has no backend 'elsewhere'"


def test_an_event_of_the_bus_uses_the_only_backend(server: Source, refresh: Callable) -> None:
    commit(source="bus:rabbit.example.org/pubsub")
    refresh()
    assert Package.objects.get(name="hello").backend == "main"


@pytest.mark.parametrize("name", ["..", ".", "a/b"])
def test_a_name_with_a_path_is_never_requested(
    server: Source, refresh: Callable, name: str
) -> None:
    commit(name)
    refresh()
    assert (last_job().state, last_job().error) == ("skipped", f"{name!r} is not a valid name")
    assert server.requests == ["GET /source/home:alice/_meta"]
