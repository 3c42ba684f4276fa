"""What a host's answers do to the jobs, and that hosts do not hinder each other."""

from collections.abc import Callable

import pytest

from tailrace.domains.builds.destinations.scm.base import RATE_LIMIT_SECONDS
from tailrace.jobs.models import Breaker, Job
from tests.builds.scm.conftest import built, linked, sending
from tests.servers.scm import COMMIT, TOKEN, ScmHost, scm_host
from tests.servers.source import Source
from tests.servers.web import Response, closed_port

pytestmark = pytest.mark.django_db(transaction=True)
ALL = pytest.mark.parametrize("host", ["github", "gitlab", "gitea"], indirect=True)
CONTEXT = "OBS: hello - standard/x86_64"


@ALL
def test_a_refused_token_fails_and_is_not_shown(
    settings, host: ScmHost, report: Callable, caplog
) -> None:
    settings.SCM_TOKENS = {host.name: "wr0ng-token"}
    event = built()
    report(event)
    job = sending(event)
    assert job.state == "failed"
    assert job.error == f"{host.name}: answered 401: the token was refused (see SCM_TOKENS)"
    assert "wr0ng-token" not in caplog.text + str(job.payload) + str(job.result)


def test_an_unknown_repository_fails(host: ScmHost, report: Callable) -> None:
    host.repository = "bob/other"
    event = built()
    report(event)
    assert sending(event).state == "failed"
    assert "answered 404: the repository or commit does not exist" in sending(event).error


@ALL
def test_an_unknown_commit_fails(host: ScmHost, server: Source, report: Callable) -> None:
    linked(server, host.link, commit="0" * 40)
    event = built()
    report(event)
    job = sending(event)
    assert (job.state, job.attempt) == ("failed", 1)
    assert f"answered {host.api.unknown_commit}" in job.error


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (Response(429, headers={"Retry-After": "120"}), 120),
        (Response(403, b'{"message": "API rate limit exceeded"}'), RATE_LIMIT_SECONDS),
        (Response(403, b"{}", {"Retry-After": "300"}), 300),
    ],
)
def test_a_host_that_limits_requests_is_left_alone_for_as_long(
    host: ScmHost, report: Callable, run_jobs: Callable, clock, fault: Response, wait: float
) -> None:
    host.faults.append(fault)
    event = built()
    report(event)
    assert sending(event).state == "pending"
    assert len(host.requests) == 1
    clock.step(wait - 30)
    run_jobs("builds.send_scm_status")
    assert len(host.requests) == 1
    clock.step(120)
    run_jobs("builds.send_scm_status")
    assert sending(event).state == "completed"
    assert CONTEXT in host.statuses


def test_a_host_with_errors_is_tried_again(
    host: ScmHost, report: Callable, run_jobs: Callable, clock
) -> None:
    host.faults.append(Response(502))
    event = built()
    report(event)
    assert sending(event).state == "pending"
    clock.step(200)
    run_jobs("builds.send_scm_status")
    assert sending(event).state == "completed"


def test_a_forbidden_status_fails(host: ScmHost, report: Callable) -> None:
    host.faults.append(Response(403, b'{"message": "Resource not accessible"}'))
    event = built()
    report(event)
    assert "is not allowed to set statuses" in sending(event).error


def test_a_redirect_is_not_followed(host: ScmHost, report: Callable) -> None:
    host.faults.append(Response(307, headers={"Location": f"http://{host.name}/elsewhere"}))
    event = built()
    report(event)
    assert "redirects are not followed" in sending(event).error
    assert len(host.requests) == 1


@pytest.mark.parametrize("host", ["gitlab"], indirect=True)
def test_a_status_that_the_commit_has_counts_as_set(host: ScmHost, report: Callable) -> None:
    report(built())
    again = built()
    report(again)
    assert sending(again).state == "completed"
    assert sending(again).result == {"status": 400, "unchanged": True}


def test_a_newer_result_replaces_one_that_was_not_sent(
    host: ScmHost, report: Callable, run_jobs: Callable, clock
) -> None:
    host.faults.extend([Response(503)])
    report(built("build_fail"))
    report(built("build_success"))
    clock.step(400)
    run_jobs("builds.send_scm_status")
    assert host.statuses[CONTEXT]["state"] == "success"
    assert not Job.objects.pending().filter(handler="builds.send_scm_status").exists()


def test_a_host_that_is_away_does_not_hinder_another(
    settings, host: ScmHost, server: Source, report: Callable, clock
) -> None:
    away = f"127.0.0.1:{closed_port()}"
    settings.SCM_TOKENS |= {away: TOKEN}
    settings.SCM_PROVIDERS |= {away: "gitea"}
    server.package("other", "1", people=f"<scmsync>http://{away}/a/b#{COMMIT}</scmsync>")
    stuck = [built(package="other", arch=f"a{number}") for number in range(20)]
    event = built()
    report(event, rounds=6)
    assert sending(event).state == "completed"
    assert {sending(each).state for each in stuck} == {"pending"}
    breaker = Breaker.objects.get(name=f"builds.send_scm_status:{away}")
    assert breaker.state_at(clock.now()) in ("open", "half-open")


def test_two_kinds_of_hosts_side_by_side(settings, host: ScmHost, server: Source, report) -> None:
    with scm_host("gitlab") as other:
        other.repository = "group/sub/hello"
        settings.SCM_TOKENS |= {other.name: TOKEN}
        settings.SCM_PROVIDERS |= {other.name: "gitlab"}
        link = f"http://{other.name}/group/sub/hello#{COMMIT}"
        server.package("other", "1", people=f"<scmsync>{link}</scmsync>")
        built(package="other")
        report(built())
        assert list(other.statuses) == ["OBS: other - standard/x86_64"]
        assert other.requests[0].path.startswith("/api/v4/projects/group%2Fsub%2Fhello/statuses/")
    assert list(host.statuses) == [CONTEXT]
