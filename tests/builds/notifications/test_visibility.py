"""Events of hidden projects reach only those who may read them."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from pydantic import BaseModel

from tailrace.domains.builds.backends.metadata import MetadataClient
from tailrace.domains.builds.backends.packages import refresh_project
from tailrace.domains.builds.event_types.base import BuildsEvent
from tailrace.domains.builds.models import Project, ProjectLogEntry, RoleHolder, Watch
from tailrace.events.privacy.visibility import may_read, readers_of
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.events.readers import Readers
from tailrace.events.types import all_types
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience.explain import explain
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tests.servers.source import source
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "home:secret"
BUILDS_TYPES = [cls for cls in all_types() if issubclass(cls, BuildsEvent)]


@pytest.fixture(autouse=True)
def _closed(settings) -> None:
    """As installed: what is not known is hidden."""
    settings.OBS_UNKNOWN_PROJECTS = "hidden"


def commit(source: str = "obs:main:1", **more: object) -> Recorded:
    payload = {"project": SECRET, "package": "hello", "rev": "2"} | more
    return publish([NewEvent("builds.commit", payload, source=source)])[0]


def project(name: str, *, backend: str = "main", hidden: bool = False, read: bool = True) -> None:
    Project.objects.create(
        backend=backend, name=name, hidden=hidden, refreshed_at=timezone.now() if read else None
    )


def show() -> None:
    Project.objects.update(hidden=False)


def readers(event: Recorded) -> Readers | None:
    return readers_of([event]).get(event.id)


@pytest.fixture
def hidden() -> None:
    project(SECRET, hidden=True)


def holds(project: str = SECRET, **who: str) -> None:
    RoleHolder.objects.create(backend="main", project=project, package="", role="reader", **who)


def test_only_holders_of_a_role_may_read(hidden: None) -> None:
    ann, bob, eve = (User.objects.create_user(name) for name in ("ann", "bob", "eve"))
    team = Group.objects.create(name="team")
    bob.groups.add(team)
    holds(user="ann")
    holds(group="team")
    event = commit()
    assert [bool(may_read(user, [event])) for user in (ann, bob, eve)] == [True, True, False]
    assert readers(event) == Readers.of({"ann"}, {"team"})
    show()
    assert readers(event) is None


def test_holders_of_the_permission_may_read_everything(hidden: None) -> None:
    root = User.objects.create_superuser("root")
    assert may_read(root, [commit()])


def test_a_watcher_is_notified_only_if_allowed_to_read(hidden: None) -> None:
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


def test_a_request_between_hidden_projects_needs_both_roles(hidden: None) -> None:
    project("other", hidden=True)
    for name, user in ((SECRET, "ann"), (SECRET, "bob"), ("other", "ann")):
        holds(name, user=user)
    actions = [{"sourceproject": SECRET, "targetproject": "other"}]
    (event,) = publish(
        [NewEvent("builds.request_create", {"number": 7, "actions": actions}, source="obs:main:2")]
    )
    assert readers(event) == Readers.of({"ann"})


# --- which keys name a project ---


def _keys(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _keys(part)


FIELDS = [(cls.name, key) for cls in BUILDS_TYPES for key in _keys(cls.Payload) if "project" in key]


@pytest.mark.parametrize(("name", "key"), FIELDS, ids=lambda value: value)
def test_every_key_that_names_a_project_counts(hidden: None, name: str, key: str) -> None:
    events = publish(
        [
            NewEvent(name, payload, source="obs:main:1", source_id=str(number))
            for number, payload in enumerate(_payloads(name, key))
        ],
        outside=True,
    )
    assert events
    assert readers_of(events) == {event.id: Readers() for event in events}


def _payloads(name: str, key: str) -> Iterator[dict[str, Any]]:
    (cls,) = (cls for cls in BUILDS_TYPES if cls.name == name)
    project("open")
    identity = dict.fromkeys(getattr(cls.Payload, "identity", ()), "1")
    others = {other: "open" for other in _keys(cls.Payload) if "project" in other}
    yield identity | others | {key: SECRET}


def test_the_types_of_builds_name_projects_in_these_keys() -> None:
    """A new key is looked at, too: this list says which there are."""
    assert {key for _name, key in FIELDS} == {
        "project", "project_name", "targetproject", "by_project",
    }  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {"actions": [{"sourceproject": SECRET, "targetproject": "open"}]},
        {"actions": [{"sourceproject": "open", "targetproject": SECRET}]},
        {"reviewers": [{"by_user": "ann"}, {"by_project": SECRET, "by_package": "x"}]},
        {"by_project": SECRET},
    ],
)
def test_a_review_by_a_hidden_project_is_hidden(hidden: None, more: dict[str, Any]) -> None:
    project("open")
    payload = {"number": 7, "state": "review"} | more
    (event,) = publish(
        [NewEvent("builds.review_wanted", payload, source="obs:main:1")], outside=True
    )
    assert readers(event) == Readers()


# --- what is not known is hidden ---


def test_with_two_backends_an_event_of_neither_is_hidden(settings) -> None:
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9", "test": "http://127.0.0.1:9"}
    project("open")
    event = commit("bus:1", project="open")
    assert readers(event) == Readers()
    settings.OBS_UNKNOWN_PROJECTS = "public"
    assert readers(event) is None
    project(SECRET, backend="test", hidden=True)
    assert readers(commit("bus:2")) == Readers(), "hidden on one of them"


def test_a_project_whose_metadata_was_not_read_is_hidden(settings) -> None:
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9"}
    assert readers(commit()) == Readers(undecided=True)
    project(SECRET, read=False)
    assert readers(commit(rev="3")) == Readers(undecided=True)
    Project.objects.update(refreshed_at=timezone.now())
    assert readers(commit(rev="4")) is None


def test_an_event_waits_until_the_metadata_is_read(settings, run_jobs, clock, tmp_path) -> None:
    bus = tmp_path / "bus.ndjson"
    settings.BUS_BACKENDS = {"file": f"file://{bus}"}
    with source() as server:
        settings.OBS_BACKENDS = {"main": server.url}
        meta = f'<project name="{SECRET}"><title>S</title></project>'
        server.pages[f"/source/{SECRET}/_meta"] = Response(200, meta.encode())
        event = commit()
        run_jobs("builds.notify_backend", "subscriptions.notify")
        (job,) = Job.objects.filter(event=event.id, handler="builds.notify_backend")
        assert (job.state, job.attempt) == ("pending", 0)
        assert not bus.exists()
        clock.step(10)
        run_jobs("builds.update_backend_infos")
        clock.step(10)
        run_jobs("builds.notify_backend")
    assert SECRET in bus.read_text()


def test_an_event_of_a_type_that_is_not_deployed_is_hidden() -> None:
    event = commit()
    (gone,) = [Recorded(**{name: getattr(event, name) for name in FIELD_NAMES} | {"type": "x.y"})]
    assert readers(gone) == Readers(undecided=True), "others may know it: jobs wait for them"


FIELD_NAMES = [name for name in Recorded.__slots__ if not name.startswith("_")]


def test_an_event_whose_type_fails_to_answer_is_hidden(hidden: None) -> None:
    event = commit(project="open")
    broken = Recorded(**{name: getattr(event, name) for name in FIELD_NAMES} | {"source": None})
    assert readers(broken) == Readers()
    other = commit(project="open", rev="9")
    project("open")
    assert readers_of([broken, other]) == {broken.id: Readers()}, "the others stay readable"


def test_what_was_not_understood_is_hidden(hidden: None) -> None:
    (unknown,) = publish(NewEvent("builds.unknown", {"raw_type": "X", "data": {"p": SECRET}}))
    (quarantined,) = publish([NewEvent("builds.nonsense", {"p": SECRET})], outside=True)
    assert readers(unknown) == readers(quarantined) == Readers()


def test_a_batch_of_events_is_asked_in_one_statement(
    hidden: None, django_assert_num_queries
) -> None:
    for number in range(5):
        project(f"p{number}")
    events = [commit(project=f"p{number}") for number in range(5)]
    events += publish([NewEvent("builds.create_project", {"project": "p1"}, source="obs:main:1")])
    with django_assert_num_queries(1):
        assert readers_of(events) == {}


# --- where it comes from ---


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


def test_a_hidden_project_has_no_feed_of_commits(client: Client, hidden: None, run_jobs) -> None:
    event = commit()
    run_jobs("builds.project_log")
    assert ProjectLogEntry.objects.filter(event_id=event.id).exists()
    path = f"/feeds/projects/{SECRET}.atom"
    assert client.get(path).status_code == 404
    show()
    assert client.get(path).status_code == 200
