"""Hidden projects reach nobody who may not read of them: not by mail, not in a feed."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from domains.builds.metadata import Metadata
from domains.builds.models import Project, ProjectLogEntry, RoleHolder, Watch
from domains.builds.refresh import refresh_project
from events.publish import NewEvent, Recorded, publish
from subscriptions.audible import readers_of
from subscriptions.audience import audience
from subscriptions.explain import explain
from subscriptions.models import EventSubscription
from subscriptions.readable import may_read
from tests.servers.source import source
from tests.servers.web import Answer

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "home:secret"


def commit(**more: object) -> Recorded:
    payload = {"project": SECRET, "package": "hello", "rev": "2"} | more
    return publish([NewEvent("builds.commit", payload, source="obs:main:1")])[0]


@pytest.fixture
def hidden() -> Project:
    return Project.objects.create(backend="main", name=SECRET, hidden=True)


def holds(**who: str) -> None:
    RoleHolder.objects.create(backend="main", project=SECRET, package="", role="reader", **who)


def test_who_holds_a_role_in_it_may_read_and_nobody_else(hidden: Project) -> None:
    ann, bob, eve = (User.objects.create_user(name) for name in ("ann", "bob", "eve"))
    team = Group.objects.create(name="team")
    bob.groups.add(team)
    holds(user="ann")
    holds(group="team")
    event = commit()
    assert [bool(may_read(one, [event])) for one in (ann, bob, eve)] == [True, True, False]
    readers = readers_of(event)
    assert readers is not None
    assert (readers.users, readers.groups) == ({"ann"}, {"team"})
    Project.objects.update(hidden=False)
    assert readers_of(event) is None


def test_one_who_watches_it_hears_only_if_he_may_read_it(hidden: Project) -> None:
    ann, eve = (User.objects.create_user(name, f"{name}@example.org") for name in ("ann", "eve"))
    for one in (ann, eve):
        Watch.objects.create(user=one, project=SECRET)
    EventSubscription.objects.update_or_create(
        event_type="builds.comment_for_project", role="project_watcher", channel="mail",
        user=None, group=None, defaults={"state": "on"},
    )  # fmt: skip
    holds(user="ann")
    payload = {"project": SECRET, "id": 1, "commenter": "carl", "comment_body": "hm"}
    (event,) = publish([NewEvent("builds.comment_for_project", payload, source="obs:main:1")])
    assert {one.user_id for one in audience(event) if one.channel == "mail"} == {ann.pk}
    (mail,) = [one for one in explain(event, eve) if one.channel == "mail"]
    assert mail.why == f"eve may not read of {SECRET}, which is hidden"


def test_a_request_between_two_hidden_projects_takes_both(hidden: Project) -> None:
    Project.objects.create(backend="main", name="other", hidden=True)
    holds(user="ann")
    holds(user="bob")
    RoleHolder.objects.create(backend="main", project="other", role="maintainer", user="ann")
    actions = [{"sourceproject": SECRET, "targetproject": "other"}]
    (event,) = publish(
        [NewEvent("builds.request_create", {"number": 7, "actions": actions}, source="obs:main:2")]
    )
    readers = readers_of(event)
    assert readers is not None
    assert readers.users == {"ann"}


@pytest.mark.parametrize(
    ("access", "expected"), [("<access><disable /></access>", True), ("", False)]
)
def test_the_metadata_says_so(settings, access: str, expected: bool) -> None:
    with source() as server:
        settings.OBS_BACKENDS = {"main": server.url}
        meta = f'<project name="{SECRET}"><title>S</title>{access}</project>'
        server.pages[f"/source/{SECRET}/_meta"] = Answer(200, meta.encode())
        with Metadata("main") as asked:
            assert refresh_project(asked, "main", SECRET, 1)
    assert Project.objects.get(name=SECRET).hidden is expected


def test_its_feed_of_commits_is_not_there(client: Client, hidden: Project, run_jobs) -> None:
    event = commit()
    run_jobs("builds.project_log")
    assert ProjectLogEntry.objects.filter(event_id=event.id).exists()
    path = f"/feeds/projects/{SECRET}.atom"
    assert client.get(path).status_code == 404
    Project.objects.update(hidden=False)
    assert client.get(path).status_code == 200
