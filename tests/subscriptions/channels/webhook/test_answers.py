"""What an endpoint's answers and errors do to the job."""

import signal
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from tailrace.db import clock as events_clock
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.engine.maintenance.ticking.rescue import rescue
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tailrace.net import http_client
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tests.kit import PATIENCE, wait_until, worker
from tests.servers.raw import conversing, read_request
from tests.servers.web import ReceivedRequest, Response, serving
from tests.subscriptions.channels.webhook.kit import (
    BOTH,
    WEBHOOK,
    job,
    jobs_of,
    owner,
    tries,
    verify,
)
from tests.subscriptions.sample_domain import publish_event

pytestmark = pytest.mark.django_db(transaction=True)


def test_408_429_and_5xx_are_tried_again_with_the_same_id(run_jobs, clock) -> None:
    answers = iter([408, 500, 503, 429, 200])
    with serving(lambda request: Response(next(answers))) as server:
        _ann, endpoint, _secret = owner(server.url)
        publish_event()
        run_jobs(*BOTH)
        for _ in range(4):
            clock.step(10_000)
            run_jobs(WEBHOOK)
    assert job().state == State.COMPLETED
    assert len({request.headers["webhook-id"] for request in server.requests}) == 1
    assert len({request.body for request in server.requests}) == 1
    assert len({request.headers["webhook-timestamp"] for request in server.requests}) == 5
    assert tries(endpoint) == [
        (1, 408, "retry"),
        (2, 500, "retry"),
        (3, 503, "retry"),
        (4, 429, "retry"),
        (5, 200, "ok"),
    ]
    assert [row.error for row in endpoints.deliveries_of(endpoint)][:2] == ["", "answered 429"]


@pytest.mark.parametrize("form", ["seconds", "date", "far away"])
def test_retry_after_is_honoured_in_both_forms_within_bounds(run_jobs, clock, form: str) -> None:
    date = format_datetime(events_clock.now() + timedelta(seconds=200), usegmt=True)
    value = {"seconds": "200", "date": date, "far away": "999999"}[form]
    wait = 3600 if form == "far away" else 200
    answer = Response(429, headers={"Retry-After": value})
    with serving(lambda request: answer) as server:
        owner(server.url)
        publish_event()
        run_jobs(*BOTH)
        late = (job().due_at - events_clock.now()).total_seconds()
        assert wait - 60 < late <= wait
        publish_event()  # another event: the endpoint is left alone for it, too
        clock.step(wait - 100)
        run_jobs(*BOTH)
        assert len(server.requests) == 1
        answer = Response()
        clock.step(3600)
        run_jobs(*BOTH)
        assert {row.state for row in jobs_of()} == {State.COMPLETED}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422])
def test_another_4xx_is_tried_a_few_times_then_fails(run_jobs, clock, status: int) -> None:
    with serving(lambda request: Response(status, b"no such hook")) as server:
        _ann, endpoint, _secret = owner(server.url)
        publish_event()
        run_jobs(*BOTH)
        for _ in range(5):
            clock.step(1000)
            run_jobs(WEBHOOK)
    assert job().state == State.FAILED
    assert f"answered {status}" in job().error
    assert [outcome for _, _, outcome in tries(endpoint)] == ["retry", "retry", "failed"]
    assert endpoint.deliveries.first().answer == "no such hook"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_fails(run_jobs, status: int) -> None:
    with serving() as there:
        moved = Response(status, headers={"Location": there.url})
        with serving(lambda request: moved) as server:
            _ann, endpoint, _secret = owner(server.url)
            publish_event()
            run_jobs(*BOTH)
        assert there.requests == []
    assert len(server.requests) == 1
    assert job().state == State.FAILED
    assert "redirects are not followed" in job().error
    assert tries(endpoint) == [(1, status, "failed")]


def test_410_disables_the_endpoint_and_mails_its_owner_once(run_jobs, smtp) -> None:
    with serving(lambda request: Response(410)) as server:
        _ann, endpoint, _secret = owner(f"{server.url}/in?token=s3cret-word")
        publish_event()
        run_jobs("subscriptions.notify")
        for _ in range(3):
            publish_event()
        Job.objects.filter(handler=WEBHOOK).update(due_at=events_clock.now() + timedelta(days=1))
        run_jobs("subscriptions.notify")
        Job.objects.filter(pk=jobs_of()[0].pk).update(due_at=events_clock.now())
        Job.objects.filter(pk__in=[row.pk for row in jobs_of()[1:]]).update(
            due_at=events_clock.now() + timedelta(days=1)
        )
        run_jobs(WEBHOOK)
        publish_event()
        run_jobs(*BOTH, "subscriptions.endpoint_disabled")
    assert len(server.requests) == 1
    endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.reason) == ("disabled", "it answered 410 Gone")
    assert tries(endpoint) == [(1, 410, "gone")]
    assert [row.state for row in jobs_of()] == [State.CANCELLED] * 4
    assert all("410" in row.error for row in jobs_of())
    (mail,) = [mail for mail in smtp.received if "webhook" in mail.message["Subject"]]
    assert mail.recipients == ["ann@example.org"]
    text = mail.message.get_content()
    assert "410 Gone" in text
    assert "s3cret-word" not in text


def test_a_broken_network_is_tried_again(run_jobs, clock) -> None:
    broken = [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", b""]

    def talk(peer) -> None:
        read_request(peer)
        peer.sendall(broken.pop() if broken else b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with conversing(talk) as port:
        _ann, endpoint, _secret = owner(f"http://127.0.0.1:{port}/")
        publish_event()
        run_jobs(*BOTH)
        for _ in range(4):
            clock.step(1000)
            run_jobs(WEBHOOK)
    assert job().state == State.COMPLETED
    outcomes = [outcome for _attempt, _status, outcome in tries(endpoint)]
    assert outcomes == ["retry", "retry", "ok"]


def test_an_answer_without_end_counts_by_its_status(run_jobs) -> None:
    def stream(peer) -> None:
        read_request(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            peer.sendall(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")

    with conversing(stream) as port:
        _ann, endpoint, _secret = owner(f"http://127.0.0.1:{port}/")
        publish_event()
        run_jobs(*BOTH)
    assert job().state == State.COMPLETED
    assert len(endpoint.deliveries.get().answer) == http_client.TEXT_LENGTH


def test_a_tls_error_is_tried_again_and_logged(run_jobs) -> None:
    with serving() as server:
        _ann, endpoint, _secret = owner(server.url.replace("http:", "https:"))
        publish_event()
        run_jobs(*BOTH)
    assert job().state == State.PENDING
    assert "SSL" in endpoint.deliveries.get().error


def test_an_address_that_became_private_is_refused_at_each_try(run_jobs, settings, clock) -> None:
    with serving() as server:
        _ann, endpoint, _secret = owner(server.url)
        settings.WEBHOOK_ALLOWED_NETWORKS = []
        settings.WEBHOOK_ALLOW_HTTP = True
        publish_event()
        run_jobs(*BOTH)
        for _ in range(4):
            clock.step(1000)
            run_jobs(WEBHOOK)
    assert server.requests == []
    assert job().state == State.FAILED
    assert "not a public address" in job().error
    assert [outcome for _, _, outcome in tries(endpoint)] == ["retry", "retry", "failed"]


def test_after_a_kill_the_same_id_is_sent_again(
    run_jobs, clock, process_env, tmp_path: Path
) -> None:
    at_work: list = []

    def respond(request: ReceivedRequest) -> Response:
        if at_work:
            at_work.pop().signal(signal.SIGKILL)
        return Response()

    with serving(respond) as server:
        _ann, _endpoint, secret = owner(server.url)
        publish_event(payload={"title": "Faust"})
        run_jobs("subscriptions.notify")
        env = process_env | {
            "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "DJANGO_SETTINGS_MODULE": "tests.subscriptions.sample_app.site",
        }
        Job.objects.filter(handler=WEBHOOK).update(due_at=events_clock.now() + timedelta(days=1))
        with worker(env, [WEBHOOK], log=tmp_path / "hooks.log") as sender:
            at_work.append(sender)
            Job.objects.filter(handler=WEBHOOK).update(due_at=events_clock.now())
            tick.wake_due()
            wait_until(lambda: server.requests, what="the POST")
            assert sender.process.wait(PATIENCE) == -signal.SIGKILL
        assert job().state == State.RUNNING
        clock.step(200)
        rescue()
        clock.step(10)
        run_jobs(WEBHOOK)
    assert job().state == State.COMPLETED
    first, second = server.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    for request in (first, second):
        assert verify(request, secret)["data"]["subject"] == "Faust"
