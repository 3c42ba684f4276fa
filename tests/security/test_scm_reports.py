"""Attacks on statuses of commits: other hosts, other people's words, hidden projects, tokens."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from tailrace.domains.builds.models import Project
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations.hidden import HIDDEN
from tailrace.jobs.models import Job
from tests.builds.scm.conftest import built, host, linked, report, sending, server
from tests.servers.scm import COMMIT, TOKEN, ScmHost
from tests.servers.source import Source
from tests.servers.web import Response, serving

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["host", "report", "server"]


def test_a_link_leads_to_no_host_without_a_token(
    host: ScmHost, server: Source, report: Callable
) -> None:
    with serving() as inside:
        address = inside.url.removeprefix("http://")
        for number, scmsync in enumerate(
            [
                f"http://{address}/a/b#{COMMIT}",
                f"http://{host.name}@{address}/a/b#{COMMIT}",
                f"http://{address}#@{host.name}/a/b",
                f"http://{address}?x=http://{host.name}/a/b",
                f"http://{host.name}.evil.example/a/b#{COMMIT}",
                f"http://{host.name}/../../../admin/x#{COMMIT}",
                f"http://{host.name}/a/b%2f..%2f..%2fuser/keys#{COMMIT}",
            ]
        ):
            server.package(f"p{number}", "1", people=f"<scmsync>{scmsync}</scmsync>")
            assert report(built(package=f"p{number}"), rounds=2).state == "skipped"
        assert inside.requests == []
    assert host.requests == []


@pytest.mark.parametrize("source", ["local", "api:eve:ci", "bus:"])
def test_words_of_others_set_no_status(
    settings, host: ScmHost, report: Callable, source: str
) -> None:
    job = report(built("build_success", source=source))
    assert job.state == "skipped"
    assert "no backend reported the event" in job.error
    assert host.requests == []
    settings.SCM_TRUSTED_SOURCES = ["api:frontend:obs"]
    assert report(built(source=source)).state == "skipped"


def test_a_source_that_a_setting_trusts_does(settings, host: ScmHost, report: Callable) -> None:
    settings.SCM_TRUSTED_SOURCES = ["api:frontend:obs"]
    assert report(built(source="api:frontend:obs")).state == "completed"
    assert len(host.statuses) == 1


def test_the_status_of_a_hidden_project_goes_nowhere_unless_a_setting_says_so(
    settings, host: ScmHost, server: Source, report: Callable, clock
) -> None:
    settings.OBS_UNKNOWN_PROJECTS = "hidden"
    meta = b'<project name="home:alice"><title/><access><disable/></access></project>'
    server.pages["/source/home:alice/_meta"] = Response(200, meta)
    job = report(built())
    assert (job.state, job.error) == ("skipped", HIDDEN)
    assert host.requests == []
    assert not [path for path in server.requests if "obsinfo" in path]
    settings.SCM_TAKES_HIDDEN = [host.name]
    assert report(built()).state == "completed"
    assert len(host.statuses) == 1


def test_a_project_that_is_hidden_before_the_status_is_sent(
    settings, host: ScmHost, server: Source, report: Callable, run_jobs: Callable, clock
) -> None:
    settings.OBS_UNKNOWN_PROJECTS = "hidden"
    host.faults.append(Response(503))
    event = built()
    report(event)
    assert sending(event).state == "pending"
    Project.objects.update(hidden=True, refreshed_at=timezone.now())
    clock.step(400)
    run_jobs("builds.send_scm_status")
    assert (sending(event).state, sending(event).error) == ("skipped", HIDDEN)
    assert len(host.requests) == 1


def test_a_request_of_a_hidden_project_says_nothing(
    settings, host: ScmHost, server: Source, report: Callable
) -> None:
    settings.OBS_UNKNOWN_PROJECTS = "hidden"
    now = timezone.now()
    Project.objects.create(backend="main", name="home:planted", hidden=True, refreshed_at=now)
    action = {
        "type": "submit", "sourceproject": "home:alice", "sourcepackage": "hello",
        "sourcerevision": "1", "targetproject": "home:planted",
    }  # fmt: skip
    payload = {"number": 7, "author": "alice", "state": "accepted", "actions": [action]}
    [event] = publish(NewEvent("builds.request_statechange", payload, source="bus:x/pubsub"))
    assert report(event).error == HIDDEN
    assert host.requests == []


def test_a_request_of_many_actions_costs_little(
    settings, host: ScmHost, server: Source, report: Callable
) -> None:
    settings.OBS_UNKNOWN_PROJECTS = "public"
    actions = [
        {"type": "submit", "sourceproject": "home:alice", "sourcepackage": f"p{number}"}
        for number in range(400)
    ]
    payload = {"number": 7, "author": "alice", "state": "accepted", "actions": actions}
    [event] = publish(NewEvent("builds.request_statechange", payload, source="bus:x/pubsub"))
    report(event, rounds=1)
    refreshed = Job.objects.filter(handler="builds.update_backend_infos")
    assert refreshed.count() <= 20


def test_the_token_is_in_no_row_and_no_log(
    host: ScmHost, server: Source, report: Callable, caplog, capsys
) -> None:
    host.faults.append(Response(400, f"you sent {host.api.login[1]}".encode()))
    event = built()
    report(event)
    linked(server, host.link)
    rows = [str(vars(job)) for job in Job.objects.all()]
    output = capsys.readouterr()
    assert TOKEN not in "".join(rows) + caplog.text + output.out + output.err
