"""Reads of one project or package that overlap, and changes that are reported meanwhile."""

from collections.abc import Callable, Iterator

import pytest
from django.db import transaction

from tailrace.domains.builds.backends.metadata import Meta, MetadataClient
from tailrace.domains.builds.backends.packages import read_package, refresh_project, store_package
from tailrace.domains.builds.models import Package, Project, RoleHolder, UnreadChange
from tailrace.events.publish import NewEvent, publish
from tests.servers.source import Source, source
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(settings) -> Iterator[Source]:
    with source() as server:
        settings.OBS_BACKENDS = {"main": server.url}
        yield server


def change(server: Source, who: str) -> None:
    """Give the project to somebody, hidden, and report it."""
    people = f'<person userid="{who}" role="maintainer"/><access><disable/></access>'
    meta = f'<project name="home:alice"><title/>{people}</project>'
    server.pages["/source/home:alice/_meta"] = Response(200, meta.encode())
    publish([NewEvent("builds.update_project", {"project": "home:alice"}, source="obs:main:1")])


class Slow(MetadataClient):
    """After the backend has answered, something happens before the answer is stored."""

    meanwhile: Callable[[], None]

    def project_meta(self, project: str) -> Meta:
        meta = super().project_meta(project)
        self.meanwhile()
        return meta


def test_an_older_answer_does_not_replace_a_newer_one(server: Source) -> None:
    def meanwhile() -> None:
        change(server, "carol")
        with MetadataClient("main") as quick:
            assert refresh_project(quick, "home:alice", 1)

    with Slow("main") as client:
        client.meanwhile = meanwhile
        assert refresh_project(client, "home:alice", 1)
    assert Project.objects.get().hidden
    assert list(RoleHolder.objects.values_list("user", flat=True)) == ["carol"]
    assert not UnreadChange.objects.exists()


def test_a_change_that_is_reported_during_a_read_stays_unread(server: Source) -> None:
    with Slow("main") as client:
        client.meanwhile = lambda: change(server, "carol")
        assert refresh_project(client, "home:alice", 1)
    assert not Project.objects.get().hidden
    assert UnreadChange.objects.count() == 1
    with MetadataClient("main") as client:
        assert refresh_project(client, "home:alice", 1)
    assert Project.objects.get().hidden
    assert not UnreadChange.objects.exists()


def test_the_same_holds_for_packages(server: Source) -> None:
    server.package("p", "1", people='<person userid="dave" role="maintainer"/>')
    with MetadataClient("main") as client:
        older = read_package(client, "home:alice", "p")
        server.package("p", "2", people='<person userid="carol" role="maintainer"/>')
        place = {"project": "home:alice", "package": "p"}
        publish([NewEvent("builds.update_package", place, source="obs:main:1")])
        newer = read_package(client, "home:alice", "p")
    with transaction.atomic():
        assert store_package(newer)
        assert not store_package(older)
    assert Package.objects.get().srcmd5 == "2"
    assert list(RoleHolder.objects.values_list("user", flat=True)) == ["carol"]
    assert not UnreadChange.objects.exists()


@pytest.mark.parametrize(
    ("type", "more", "place"),
    [
        ("create_project", {}, ("home:alice", "")),
        ("undelete_project", {}, ("home:alice", "")),
        ("create_package", {"package": "p"}, ("home:alice", "p")),
        ("undelete_package", {"package": "p"}, ("home:alice", "p")),
        ("relationship_create", {"user": "carol", "role": "reader"}, ("home:alice", "")),
        ("relationship_delete", {"user": "dave", "package": "p"}, ("home:alice", "p")),
        ("commit", {"package": "_project"}, ("home:alice", "")),
        ("commit", {"package": "p"}, None),
        ("update_project_config", {}, None),
    ],
)
def test_these_events_report_changes(server: Source, type, more, place) -> None:
    payload = {"project": "home:alice"} | more
    publish([NewEvent(f"builds.{type}", payload, source="bus:rabbit/pubsub")])
    places = list(UnreadChange.objects.values_list("project", "package"))
    assert places == ([place] if place else [])


@pytest.mark.parametrize("origin", ["api:eve:x", "", "obs:elsewhere:1"])
def test_no_other_source_reports_changes(server: Source, origin: str) -> None:
    """Anyone with a token could hide a project for a while."""
    publish([NewEvent("builds.update_project", {"project": "home:alice"}, source=origin)])
    assert not UnreadChange.objects.exists()
