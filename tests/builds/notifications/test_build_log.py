"""Mails about failed builds show the end of the build's log."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tailrace.domains.builds.backends.client import BackendError
from tailrace.domains.builds.backends.log_tails import LONGEST_WAIT
from tailrace.domains.builds.handlers.fetch_build_log import LINES, log_tail
from tailrace.domains.builds.invariants import LogTailsArePruned
from tailrace.domains.builds.models import BuildLogTail, Package, Project, RoleHolder
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import EventSubscription
from tests.servers.backend import TestBackend
from tests.servers.smtp import MailServer
from tests.servers.web import Response, closed_port, serving

pytestmark = pytest.mark.django_db(transaction=True)

FAILED = {"project": "home:alice", "package": "hello", "repository": "standard", "arch": "x86_64"}
QUEUES = ("subscriptions.notify", "subscriptions.mail", "builds.fetch_build_log")


@pytest.fixture(autouse=True)
def people() -> None:
    read = {"backend": "main", "refreshed_at": timezone.now()}
    Project.objects.create(name="home:alice", **read)
    Package.objects.create(project="home:alice", name="hello", **read)
    for name in ("ann", "bob", "cleo"):
        user = User.objects.create_user(name, f"{name}@example.org")
        EventSubscription.objects.create(
            event_type="builds.build_fail", role="maintainer", channel="mail", user=user
        )
        RoleHolder.objects.create(
            backend="main", project="home:alice", role="maintainer", user=name
        )


@pytest.fixture
def mails(run_jobs: Callable, smtp: MailServer, clock) -> Callable[..., list[tuple[str, str]]]:
    """Publish a failed build, let the mails arrive; return each as text and HTML."""

    def arrive(source: str = "obs:main:1", seconds: float = 5, **more: Any) -> list[Any]:
        publish(NewEvent("builds.build_fail", FAILED | more, source=source))
        for _ in range(4):
            run_jobs(*QUEUES)
            clock.step(seconds)
        return [
            tuple(mail.message.get_body([kind]).get_content() for kind in ("plain", "html"))
            for mail in smtp.received
        ]

    return arrive


def log_requests(backend: TestBackend) -> list[dict[str, str]]:
    path = "/build/home:alice/standard/x86_64/hello/_log"
    return [request.params for request in backend.requests if request.path == path]


def test_a_mail_shows_the_last_lines(backend: TestBackend, mails: Callable) -> None:
    log = b"".join(b"[%4ds] line %d\r\n" % (n, n) for n in range(5000))
    backend.build_logs["home:alice/hello"] = log + b"\x1b[31;1merror:\x1b[0m a < b \xff\x00\n"
    received = mails()
    assert len(received) == 3
    text, html = (part.replace("\r\n", "\n") for part in received[0])
    assert "The end of the build log:\n\n[4971s] line 4971\n" in text
    assert "[4999s] line 4999\nerror: a < b \ufffd\n" in text
    assert "line 4970\n" not in text
    assert "<pre" in html
    assert "error: a &lt; b \ufffd</pre>" in html


def test_the_log_is_read_once_and_only_its_end(
    settings, backend: TestBackend, mails: Callable
) -> None:
    settings.OBS_LOG_TAIL_BYTES = 1000
    backend.build_logs["home:alice/hello"] = b"x" * 900_000 + b"\nthe end\n"
    assert all("the end" in text for text, _html in mails())
    size = str(900_009)
    assert log_requests(backend) == [
        {"view": "entry"},
        {"nostream": "1", "start": "899009", "end": size},
    ]
    assert len(BuildLogTail.objects.get().text) < 1000


def test_a_backend_that_is_away_costs_only_the_log(settings, mails: Callable) -> None:
    settings.OBS_BACKENDS = {"main": f"http://127.0.0.1:{closed_port()}"}
    received = mails(seconds=20)
    assert len(received) == 3
    text, html = received[0]
    reason = "The end of the build log is missing: the backend did not send it."
    assert reason in text
    assert reason in html


def test_a_log_that_is_gone_is_not_tried_again(backend: TestBackend, mails: Callable) -> None:
    received = mails(package="..")
    assert "missing: the backend has no such log" in received[0][0]
    assert [request for request in backend.requests if "_log" in request.path] == []


def test_mails_do_not_wait_for_a_queue_that_nobody_serves(
    settings, backend: TestBackend, run_jobs: Callable, smtp: MailServer, clock
) -> None:
    publish(NewEvent("builds.build_fail", FAILED, source="obs:main:1"))
    run_jobs(*QUEUES[:2])
    assert smtp.received == []
    for _ in range(3):
        clock.step(LONGEST_WAIT / 2)
        run_jobs(*QUEUES[:2])
    assert len(smtp.received) == 3
    body = smtp.received[0].message.get_body(["plain"]).get_content()
    assert "it was not received within 60 s" in body
    assert [job.attempt for job in Job.objects.filter(handler="subscriptions.mail")] == [1, 1, 1]


@pytest.mark.parametrize("source", ["local", "api:eve:x"])
def test_what_no_backend_reported_makes_no_request(
    backend: TestBackend, mails: Callable, source: str
) -> None:
    received = mails(source=source)
    assert len(received) == 3
    assert "build log" not in received[0][0]
    assert log_requests(backend) == []


def test_zero_bytes_switch_it_off(settings, backend: TestBackend, mails: Callable) -> None:
    settings.OBS_LOG_TAIL_BYTES = 0
    assert "build log" not in mails()[0][0]
    assert BuildLogTail.objects.count() == 0


def test_a_server_that_sends_too_much_is_cut_off(settings) -> None:
    def respond(request) -> Response:
        entry = b'<directory><entry name="_log" size="5000000"/></directory>'
        return Response(200, entry if "view" in request.path else b"x" * 5_000_000)

    with serving(respond) as server:
        settings.OBS_BACKENDS = {"main": server.url}
        with pytest.raises(BackendError, match="the rest was not read"):
            log_tail("main", "p", "q", "r", "a")


def test_the_first_line_is_whole(settings) -> None:
    settings.OBS_LOG_TAIL_BYTES = 10
    log = b"first line\nsecond\n"

    def respond(request) -> Response:
        entry = b'<directory><entry name="_log" size="%d"/></directory>' % len(log)
        return Response(200, entry if "view" in request.path else log[-10:])

    with serving(respond) as server:
        settings.OBS_BACKENDS = {"main": server.url}
        assert log_tail("main", "p", "q:flavor", "r", "a") == "second"
    assert LINES == 30


def test_tails_are_kept_for_a_day(clock) -> None:
    [event] = publish(NewEvent("builds.build_fail", FAILED))
    BuildLogTail.objects.create(event_id=event.id, requested_at=event.recorded_at)
    invariant = LogTailsArePruned()
    assert invariant.find() == []
    clock.step(90_000)
    assert invariant.repair(invariant.find()) == 1
