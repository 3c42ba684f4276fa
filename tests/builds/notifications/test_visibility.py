"""Events of hidden projects reach only those who may read them."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from domains.builds.backends.metadata import MetadataClient
from domains.builds.backends.packages import refresh_project
from domains.builds.models import Project, ProjectLogEntry, RoleHolder, Watch
from events.publish import NewEvent, Recorded, publish
from subscriptions.audience.explain import explain
from subscriptions.audience.resolve import audiences
from subscriptions.audience.visibility import may_read
from subscriptions.models import EventSubscription
from subscriptions.types.subscribable import readers_of
from tests.servers.source import source
from tests.servers.web import Response

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


def test_only_holders_of_a_role_may_read(hidden: Project) -> None:
    ann, bob, eve = (User.objects.create_user(name) for name in ("ann", "bob", "eve"))
    team = Group.objects.create(name="team")
    bob.groups.add(team)
    holds(user="ann")
    holds(group="team")
    event = commit()
    assert [bool(may_read(user, [event])) for user in (ann, bob, eve)] == [True, True, False]
    readers = readers_of(event)
    assert readers is not None
    assert (readers.users, readers.groups) == ({"ann"}, {"team"})
    Project.objects.update(hidden=False)
    assert readers_of(event) is None


def test_a_watcher_is_notified_only_if_allowed_to_read(hidden: Project) -> None:
    ann, eve = (User.objects.create_user(name, f"{name}@example.org") for name in ("ann", "eve"))
    for user in (ann, eve):
        Watch.objects.create(user=user, project=SECRET)
    EventSubscription.objects.update_or_create(
        event_type="builds.comment_for_project", role="project_watcher", channel="mail",
        user=None, group=None, defaults={"state": "on"},
    )  # fmt: skip
    holds(user="ann")
    payload = {"project": SECRET, "id": 1, "commenter": "carl", "comment_body": "hm"}
    (event,) = publish([NewEvent("builds.comment_for_project", payload, source="obs:main:1")])
    assert {
        recipient.user_id for recipient in audiences([event]) if recipient.channel == "mail"
    } == {ann.pk}
    (mail,) = [row for row in explain(event, eve) if row.channel == "mail"]
    assert mail.why == f"eve may not read {SECRET}, which is hidden"


def test_a_request_between_hidden_projects_needs_both_roles(hidden: Project) -> None:
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
def test_the_metadata_hides_a_project(settings, access: str, expected: bool) -> None:
    with source() as server:
        settings.OBS_BACKENDS = {"main": server.url}
        meta = f'<project name="{SECRET}"><title>S</title>{access}</project>'
        server.pages[f"/source/{SECRET}/_meta"] = Response(200, meta.encode())
        with MetadataClient("main") as client:
            assert refresh_project(client, SECRET, 1)
    assert Project.objects.get(name=SECRET).hidden is expected


def test_a_hidden_project_has_no_feed_of_commits(client: Client, hidden: Project, run_jobs) -> None:
    event = commit()
    run_jobs("builds.project_log")
    assert ProjectLogEntry.objects.filter(event_id=event.id).exists()
    path = f"/feeds/projects/{SECRET}.atom"
    assert client.get(path).status_code == 404
    Project.objects.update(hidden=False)
    assert client.get(path).status_code == 200
