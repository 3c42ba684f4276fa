"""Who is notified after projects and packages changed at the backend: by what they are now."""

from collections.abc import Callable

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from tailrace.domains.builds.models import RoleHolder, UnreadChange, Watch
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import EventSubscription, GroupAddress, Notification
from tests.servers.backend import TestBackend

pytestmark = pytest.mark.django_db(transaction=True)
REFRESH = "builds.update_backend_infos"
HIDDEN = "<access><disable/></access>"
FEED = "/feeds/projects/home:alice.atom"


@pytest.fixture(autouse=True)
def _closed(settings) -> None:
    settings.OBS_UNKNOWN_PROJECTS = "hidden"


@pytest.fixture
def users() -> None:
    """Each is notified on the web of failures, in every role and as a watcher of home:alice."""
    for login in ("alice", "carol", "dave", "eve"):
        user = User.objects.create_user(login, f"{login}@example.org")
        for role in ("maintainer", "bugowner", "project_watcher"):
            EventSubscription.objects.create(
                event_type="builds.build_fail", role=role, channel="web", user=user
            )


class Build:
    """The sample backend, its poller and the jobs of its events."""

    def __init__(self, backend: TestBackend, poll: Callable, run_jobs: Callable, clock) -> None:
        self.backend, self._poll, self._run_jobs, self._clock = backend, poll, run_jobs, clock

    def put(self, *place: str, people: str = "", more: str = "") -> None:
        """Write the `_meta` of a project or package; `people` as in `carol:maintainer @t:reader`"""
        kind = "project" if len(place) == 1 else "package"
        lines = [_holder(*person.split(":")) for person in people.split()]
        meta = f'<{kind} name="{place[-1]}"><title/>{"".join(lines)}{more}</{kind}>'
        path = "/".join(place)
        answer = httpx.put(f"{self.backend.url}/source/{path}/_meta", content=meta, timeout=60)
        assert answer.status_code == 200

    def delete(self, *place: str) -> None:
        assert httpx.delete(f"{self.backend.url}/source/{'/'.join(place)}").status_code == 200

    def fail(self, project: str = "home:alice", package: str = "hello") -> None:
        build = {"project": project, "package": package, "repository": "r", "arch": "a"}
        self.backend.notify("BUILD_FAIL", build)

    def commit(self, project: str = "home:alice", package: str = "hello") -> None:
        values = {"project": project, "package": package, "rev": "2", "user": "zoe"}
        self.backend.notify("SRCSRV_COMMIT", values)

    def poll(self) -> None:
        """Read the log, and run at once what is due: nothing of it waits for a refresh."""
        self._poll()
        self.work()

    def work(self) -> None:
        self._run_jobs("builds.project_log", "subscriptions.notify")

    def wait(self, seconds: float = 10, rounds: int = 3) -> None:
        """Let time pass, with the refreshes that become due, and what waited for them."""
        for _ in range(rounds):
            self._clock.step(seconds)
            self._run_jobs(REFRESH)
        self.work()

    def job(self) -> Job:
        """Return the job that finds the recipients of the last failure."""
        return Job.objects.filter(handler="subscriptions.notify").latest("event_id")

    def notified(self) -> str:
        """Return who was notified of the last failure, e.g. `alice @team`."""
        event = Event.objects.filter(type="builds.build_fail").latest("id")
        rows = Notification.objects.filter(event=event).select_related("user", "group")
        return " ".join(
            sorted(row.user.username if row.user else f"@{row.group.name}" for row in rows)
        )


def _holder(name: str, role: str) -> str:
    if name.startswith("@"):
        return f'<group groupid="{name[1:]}" role="{role}"/>'
    return f'<person userid="{name}" role="{role}"/>'


@pytest.fixture
def build(backend: TestBackend, poll, run_jobs, clock, users: None) -> Build:
    clock.stop()
    return Build(backend, poll, run_jobs, clock)


@pytest.fixture
def known(build: Build) -> Build:
    """home:alice and its package were read; the project is Alice's, the package Dave's."""
    build.put("home:alice", people="alice:maintainer")
    build.put("home:alice", "hello", people="dave:maintainer")
    build.commit()
    build.poll()
    build.wait()
    assert not UnreadChange.objects.exists()
    assert RoleHolder.objects.count() == 2
    return build


def watch(login: str) -> None:
    Watch.objects.create(user=User.objects.get(username=login), project="home:alice")


# --- hidden projects ---


def test_a_project_that_was_turned_hidden_is_hidden_at_once(known: Build, client: Client) -> None:
    watch("eve")
    assert client.get(FEED).status_code == 200
    known.put("home:alice", people="alice:maintainer", more=HIDDEN)
    known.fail()
    known.poll()
    assert (known.job().state, known.notified()) == ("pending", "")
    assert client.get(FEED).status_code == 404
    known.wait()
    assert (known.job().state, known.notified()) == ("skipped", ""), "dave may not read it"
    assert client.get(FEED).status_code == 404
    known.put("home:alice", people="alice:maintainer dave:reader eve:reader")
    known.fail()
    known.poll()
    known.wait()
    assert known.notified() == "dave eve", "shown again"
    assert client.get(FEED).status_code == 200


def test_a_notification_that_waits_for_its_delivery_is_checked_again(
    known: Build, run_jobs: Callable
) -> None:
    watch("eve")
    known.fail()
    known.poll()
    assert known.notified() == "dave eve"
    known.put("home:alice", people="alice:maintainer dave:reader", more=HIDDEN)
    known.poll()
    run_jobs("subscriptions.web")
    jobs = Job.objects.filter(handler="subscriptions.web")
    assert {job.state for job in jobs} == {"pending"}, "until it is known who may read it"
    known.wait()
    run_jobs("subscriptions.web")
    assert sorted(jobs.values_list("state", flat=True)) == ["completed", "skipped"]


def test_a_project_that_is_hidden_from_birth_shows_nothing(build: Build, client: Client) -> None:
    Watch.objects.create(user=User.objects.get(username="eve"), project="secret")
    build.put("secret", people="alice:maintainer", more=HIDDEN)
    build.put("secret", "plan")
    build.commit("secret", "plan")
    build.fail("secret", "plan")
    build.poll()
    assert client.get("/feeds/projects/secret.atom").status_code == 404
    assert (build.job().state, build.notified()) == ("pending", "")
    build.wait()
    assert client.get("/feeds/projects/secret.atom").status_code == 404
    assert build.notified() == "alice"


def test_a_project_that_was_deleted_and_made_again_is_read_again(
    known: Build, client: Client
) -> None:
    watch("eve")
    known.delete("home:alice")
    known.poll()
    known.put("home:alice", people="carol:maintainer", more=HIDDEN)
    known.put("home:alice", "hello")
    known.fail()
    known.poll()
    assert client.get(FEED).status_code == 404
    assert known.job().state == "pending"
    known.wait()
    assert known.notified() == "carol"
    assert client.get(FEED).status_code == 404


def test_a_backend_that_does_not_answer_leaves_it_hidden(
    known: Build, client: Client, settings
) -> None:
    watch("eve")
    known.put("home:alice", people="alice:maintainer")
    known.fail()
    known.poll()
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9"}
    known.wait(seconds=1300)
    assert (known.job().state, known.notified()) == ("skipped", "")
    assert client.get(FEED).status_code == 404
    assert UnreadChange.objects.count() == 1
    settings.OBS_BACKENDS = {"main": known.backend.url}
    known.wait(seconds=4000, rounds=1)
    assert client.get(FEED).status_code == 200


# --- roles ---


def test_who_replaced_a_maintainer_is_notified_instead(known: Build) -> None:
    known.put("home:alice", "hello", people="carol:maintainer")
    known.fail()
    known.poll()
    assert known.job().state == "pending"
    known.wait()
    assert known.notified() == "carol"


def test_a_role_in_the_project_counts_for_packages_without_their_own(known: Build) -> None:
    known.put("home:alice", "hello")
    known.put("home:alice", people="carol:maintainer")
    known.fail()
    known.poll()
    known.wait()
    assert known.notified() == "carol"


def test_the_role_of_a_group_follows_the_metadata(known: Build) -> None:
    team = Group.objects.create(name="team")
    GroupAddress.objects.create(group=team, email="team@example.org")
    EventSubscription.objects.create(
        event_type="builds.build_fail", role="maintainer", channel="mail", group=team
    )
    known.put("home:alice", "hello", people="@team:maintainer")
    known.fail()
    known.poll()
    known.wait()
    assert known.notified() == "@team"
    known.put("home:alice", "hello", people="dave:maintainer")
    known.fail()
    known.poll()
    known.wait()
    assert known.notified() == "dave"


def test_the_bugowner_of_a_new_project_is_notified(build: Build) -> None:
    build.put("home:new", people="carol:bugowner")
    build.put("home:new", "first", people="dave:maintainer")
    build.fail("home:new", "first")
    build.poll()
    build.wait()
    assert build.notified() == "carol dave"


def test_a_package_of_an_existing_backend_is_read_before_its_failure_is_sent(build: Build) -> None:
    meta = '<package name="hello"><title/><person userid="dave" role="maintainer"/></package>'
    build.backend.metadata.write_meta(meta, "home:alice", "hello")
    build.fail()
    build.poll()
    assert build.job().state == "pending"
    build.wait()
    assert build.notified() == "dave"


def test_a_package_that_does_not_exist_has_the_holders_of_its_project(known: Build) -> None:
    known.fail(package="linked")
    known.poll()
    known.wait()
    assert known.notified() == "alice"


@pytest.mark.parametrize("package", ["a/b", "..", "x" * 300])
def test_what_cannot_be_read_is_not_waited_for(known: Build, package: str) -> None:
    known.fail(package=package)
    known.poll()
    assert known.job().state == "completed"
    assert known.notified() == "alice"


def test_roles_that_cannot_be_read_for_an_hour_are_those_of_before(known: Build, settings) -> None:
    known.put("home:alice", "hello", people="carol:maintainer")
    known.fail()
    known.poll()
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9"}
    known.wait(seconds=700)
    assert known.job().state == "pending"
    known.wait(seconds=700)
    assert known.notified() == "dave"


def test_many_changes_are_read_at_once(known: Build) -> None:
    before = len(known.backend.requests)
    for _ in range(20):
        known.put("home:alice", people="carol:maintainer")
    known.poll()
    assert UnreadChange.objects.count() == 20
    known.wait(rounds=1)
    assert not UnreadChange.objects.exists()
    paths = [request.path for request in known.backend.requests[before:] if request.method == "GET"]
    assert paths.count("/source/home:alice/_meta") == 1


def test_notifications_follow_soon_after_answers_that_were_cut(build: Build) -> None:
    """Six minutes passed: the third failure of a refresh made it wait for five."""
    build.put("home:alice", people="alice:maintainer")
    build.put("home:alice", "hello")
    build.backend.cut_paths.add("_meta")
    build.fail()
    build.poll()
    for _ in range(12):
        build.wait(rounds=1)
    assert build.job().state == "pending"
    build.backend.cut_paths.clear()
    for _ in range(18):
        build.wait(rounds=1)
    assert build.job().state == "completed"
    assert build.notified() == "alice"
