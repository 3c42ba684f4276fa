"""What owners do with their endpoints."""

import pytest
from django.db import connection

from tailrace.jobs.runtime.states import State
from tailrace.net import http_client
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.channels.webhook.operations.endpoints import EndpointError
from tailrace.subscriptions.models import Delivery, Endpoint
from tests.servers.web import ReceivedRequest, Response, closed_port, serving, silent_port
from tests.subscriptions.channels.webhook.kit import (
    BOTH,
    WEBHOOK,
    job,
    jobs_of,
    owner,
    sent_test,
    tries,
    verify,
)
from tests.subscriptions.sample_domain import person, publish_event

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_forbidden_url_is_refused_when_it_is_saved() -> None:
    ann = person("ann")
    for url, words in (
        ("https://10.0.0.1/", "10.0.0.1 is not a public address"),
        ("http://example.org/", "use https://"),
        ("https://example.org:22/", "port 22"),
        ("example.org", "use https://"),
    ):
        with pytest.raises(EndpointError, match=words):
            endpoints.create(ann, url)
    endpoint, _secret = endpoints.create(ann, "  https://example.org/hook ", " mine ")
    assert (endpoint.url, endpoint.description) == ("https://example.org/hook", "mine")
    with pytest.raises(EndpointError):
        endpoints.change(endpoint, url="https://10.0.0.1/")
    endpoints.change(endpoint, url="https://example.org/other", description="yours")
    endpoint.refresh_from_db()
    assert (endpoint.url, endpoint.description) == ("https://example.org/other", "yours")


def test_the_number_of_endpoints_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 2)
    ann = person("ann")
    for _ in range(2):
        endpoints.create(ann, "https://example.org/")
    with pytest.raises(EndpointError, match="delete one first"):
        endpoints.create(ann, "https://example.org/")


def test_impossible_state_changes_are_refused() -> None:
    _ann, endpoint, _secret = owner("https://example.org/")
    with pytest.raises(EndpointError, match="is enabled, not paused"):
        endpoints.resume(endpoint)
    endpoints.disable(endpoint, by="ann")
    assert endpoint.reason == "disabled by ann"
    for move in (endpoints.pause, endpoints.resume, endpoints.disable):
        with pytest.raises(EndpointError, match="is disabled, not"):
            move(endpoint)
    endpoints.enable(endpoint)
    assert (endpoint.state, endpoint.reason) == ("enabled", "")


def test_a_paused_endpoint_keeps_its_deliveries_uncharged(run_jobs, clock) -> None:
    with serving() as server:
        _ann, endpoint, _secret = owner(server.url)
        publish_event()
        run_jobs("subscriptions.notify")
        endpoints.pause(endpoint, by="ann")
        publish_event()
        for _ in range(20):
            run_jobs(*BOTH)
            clock.step(3600)
        assert server.requests == []
        held = jobs_of()
        assert [(row.state, row.attempt) for row in held] == [(State.PENDING, 0)] * 2
        assert "held: paused by ann" in held[0].error
        assert max(row.claim_no for row in held) <= 10, "seldom looked at"
        endpoints.resume(endpoint)
        run_jobs(WEBHOOK)
    assert len(server.requests) == 2
    assert {row.state for row in jobs_of()} == {State.COMPLETED}


def test_disabling_and_deleting_cancel_what_waits_with_a_reason(run_jobs) -> None:
    ann, endpoint, _secret = owner("https://example.org/")
    other, _ = endpoints.create(ann, "https://example.org/")
    publish_event()
    run_jobs("subscriptions.notify")
    endpoints.disable(endpoint, by="ann")
    first, second = jobs_of()
    assert first.state == State.CANCELLED
    assert first.error == "cancelled by ann, who disabled the endpoint"
    assert second.state == State.PENDING
    endpoints.delete(other, by="ann")
    assert jobs_of()[1].error == "cancelled by ann, who deleted the endpoint"
    publish_event()
    run_jobs(*BOTH)
    assert len(jobs_of()) == 2, "a disabled one gets nothing"


def test_what_failed_is_replayed_with_its_id(run_jobs, clock) -> None:
    answer = Response(301)
    with serving(lambda request: answer) as server:
        _ann, endpoint, _secret = owner(server.url)
        publish_event()
        run_jobs(*BOTH)
        assert job().state == State.FAILED
        answer = Response()
        failed = endpoints.deliveries_of(endpoint).get()
        assert endpoints.replay(failed, by="ann") == job().pk
        run_jobs(WEBHOOK)
        assert job().state == State.COMPLETED
        with pytest.raises(EndpointError, match="cannot be repeated: it is completed"):
            endpoints.replay(job())
        endpoints.disable(endpoint)
        with pytest.raises(EndpointError, match="enable it first"):
            endpoints.replay(failed)
    assert len({request.headers["webhook-id"] for request in server.requests}) == 1
    assert [row.outcome for row in endpoints.deliveries_of(endpoint)] == ["ok", "failed"]


def test_a_test_delivery_is_sent_by_a_job_and_signed() -> None:
    with serving(lambda request: Response(200, b"thanks")) as server:
        _ann, endpoint, secret = owner(server.url)
        row, again = sent_test(endpoint), sent_test(endpoint)
    assert (row.outcome, row.status, row.answer, row.job_id) == ("ok", 200, "thanks", None)
    assert verify(server.requests[0], secret)["type"] == "tailrace.test"
    assert row.message_id != again.message_id
    with pytest.raises(EndpointError, match="send another test"):
        endpoints.replay(row)


def test_a_test_delivery_is_limited_and_shows_the_error(
    settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "TOTAL_SECONDS", 0.3)
    _ann, endpoint, _secret = owner(f"http://127.0.0.1:{closed_port()}/")
    assert "Connect call failed" in sent_test(endpoint).error
    with silent_port() as port:
        endpoints.change(endpoint, url=f"http://127.0.0.1:{port}/")
        assert sent_test(endpoint).error == "no answer in 0.3 s"
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    settings.WEBHOOK_ALLOW_HTTP = True
    assert "not a public address" in sent_test(endpoint).error
    endpoint.refresh_from_db()
    assert endpoint.failing_since is None, "a test says nothing of its health"
    for _ in range(2):
        endpoints.send_test(endpoint)
    with pytest.raises(EndpointError, match=r"too many tests .+ again in \d+ s"):
        endpoints.send_test(endpoint)


def test_tries_are_listed_the_newest_first(run_jobs, clock) -> None:
    with serving(lambda request: Response(500)) as server:
        _ann, endpoint, _secret = owner(server.url)
        publish_event()
        run_jobs(*BOTH)
        clock.step(10)
        run_jobs(WEBHOOK)
    assert tries(endpoint) == [(1, 500, "retry"), (2, 500, "retry")]
    assert [row.attempt for row in endpoints.deliveries_of(endpoint)] == [2, 1]


def test_deleting_an_endpoint_during_a_delivery_does_no_harm(run_jobs) -> None:
    def respond(request: ReceivedRequest) -> Response:
        if request.path == "/deleted":
            Endpoint.objects.filter(url__endswith=request.path).delete()
            connection.close()  # of the server's thread
        return Response()

    with serving(respond) as server:
        ann, _endpoint, _secret = owner(f"{server.url}/deleted")
        endpoints.create(ann, f"{server.url}/other")
        publish_event()
        run_jobs(*BOTH)
    assert len(server.requests) == 2
    assert {row.state for row in jobs_of()} == {State.COMPLETED}
    assert Delivery.objects.count() == 1
