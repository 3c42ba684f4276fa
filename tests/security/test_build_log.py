"""Attacks by and on the end of a build log, which a mail shows."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tailrace.domains.builds.models import BuildLogTail, Package, Project, RoleHolder, Watch
from tailrace.events.publish import NewEvent, publish
from tailrace.subscriptions.models import EventSubscription
from tests.servers import backend as servers
from tests.servers.smtp import MailServer

pytestmark = pytest.mark.django_db(transaction=True)

QUEUES = ("subscriptions.notify", "subscriptions.mail", "builds.fetch_build_log")
SECRET = "the planted line"


@pytest.fixture
def backend(settings):
    with servers.running() as running:
        settings.OBS_BACKENDS = {"main": running.url}
        settings.OBS_UNKNOWN_PROJECTS = "hidden"
        for name in ("home:planted", "home:open"):
            line = SECRET if name == "home:planted" else "an open line"
            running.build_logs[f"{name}/hello"] = f"{line}\n".encode()
            Project.objects.create(
                backend="main",
                name=name,
                hidden=name == "home:planted",
                refreshed_at=timezone.now(),
            )
            Package.objects.create(
                backend="main", project=name, name="hello", refreshed_at=timezone.now()
            )
        yield running


def watcher(name: str, project: str) -> User:
    user = User.objects.create_user(name, f"{name}@example.org")
    Watch.objects.create(user=user, project=project)
    EventSubscription.objects.create(
        event_type="builds.build_fail", role="project_watcher", channel="mail", user=user
    )
    return user


def fail(project: str, **more: str) -> None:
    payload = {"project": project, "package": "hello", "repository": "r", "arch": "a", **more}
    publish(NewEvent("builds.build_fail", payload, source="obs:main:1"))


def log_requests(backend: servers.TestBackend) -> list[str]:
    return [request.path for request in backend.requests if request.path.endswith("/_log")]


def test_the_log_of_a_hidden_project_is_fetched_for_its_people_alone(
    backend, run_jobs, smtp: MailServer, clock
) -> None:
    watcher("eve", "home:planted")
    fail("home:planted")
    for _ in range(3):
        run_jobs(*QUEUES)
        clock.step(5)
    assert smtp.received == []
    assert log_requests(backend) == []
    watcher("ann", "home:planted")
    RoleHolder.objects.create(backend="main", project="home:planted", role="reader", user="ann")
    fail("home:planted")
    for _ in range(3):
        run_jobs(*QUEUES)
        clock.step(5)
    assert smtp.addressed() == ["ann@example.org"]
    assert SECRET in smtp.received[0].message.get_body(["plain"]).get_content()


def test_who_loses_the_role_while_the_log_is_fetched_gets_nothing(
    backend, run_jobs, smtp: MailServer, clock
) -> None:
    watcher("ann", "home:planted")
    role = RoleHolder.objects.create(
        backend="main", project="home:planted", role="reader", user="ann"
    )
    fail("home:planted")
    run_jobs(*QUEUES)
    assert BuildLogTail.objects.get().text == SECRET
    role.delete()
    clock.step(5)
    run_jobs(*QUEUES)
    assert smtp.received == []


def test_a_name_leads_to_no_other_log(backend, run_jobs, smtp: MailServer, clock) -> None:
    watcher("eve", "home:open")
    for evil in ("../../../home:planted/r/a/hello/_log?", "..", "hello/_log?view=entry&x=", "\r\n"):
        fail("home:open", repository=evil)
    fail("home:open", package="../../../home:planted/r/a/hello")
    for _ in range(3):
        run_jobs(*QUEUES)
        clock.step(5)
    assert len(smtp.received) == 5
    assert not [path for path in log_requests(backend) if "planted" in path]
    assert not [
        mail for mail in smtp.received
        if SECRET in mail.message.get_body(["plain"]).get_content()
    ]  # fmt: skip


def test_a_log_brings_no_markup_into_a_mail(backend, run_jobs, smtp: MailServer, clock) -> None:
    watcher("ann", "home:open")
    backend.build_logs["home:open/hello"] = (
        b"</pre><script>alert(1)</script><img src=//evil.example/x>{% debug %}{{ event }}\r"
        b"\x1b]0;title\x07\x1b[2J\x00\x85.\r\nBcc: eve@example.org\n" + b"z" * 12_000
    )
    fail("home:open")
    for _ in range(3):
        run_jobs(*QUEUES)
        clock.step(5)
    [mail] = smtp.received
    assert mail.recipients == ["ann@example.org"]
    html = mail.message.get_body(["html"]).get_content()
    assert "&lt;/pre&gt;&lt;script&gt;" in html
    assert "<script" not in html
    assert "<img" not in html
    assert "{% debug %}{{ event }}" in html
    assert "\x1b" not in html
    assert "title" not in mail.message.get_body(["plain"]).get_content().split("build log")[1]
