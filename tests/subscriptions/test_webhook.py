"""What an endpoint gets, and what its answers do to the job."""

import signal
import time
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from standardwebhooks import WebhookVerificationError

from events import clock as events_clock
from jobs import bucket, tick
from jobs.enqueue import enqueue
from jobs.models import Attempt, Job
from jobs.rescue import rescue
from jobs.states import State
from subscriptions import courier, endpoints, sending
from subscriptions.audience import audience
from subscriptions.channels.webhook import Webhook
from subscriptions.models import Delivery, Endpoint, EventSubscription
from subscriptions.roles import Receivers
from subscriptions.signing import new_secret
from tests.kit import wait_until, worker
from tests.servers.raw import conversing, read_request
from tests.servers.web import Answer, Asked, closed_port, serving, silent_port
from tests.subscriptions.hooks import BOTH, WEBHOOK, job, jobs_of, owner, tries, verify
from tests.subscriptions.stage import FIRST, happen, hold, person, readers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _local(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


# --- what is sent ---------------------------------------------------------------------------------


def test_an_endpoint_gets_the_event_signed_as_standard_webhooks_says(run_jobs) -> None:
    with serving() as server:
        _ann, _endpoint, secret = owner(f"{server.url}/in?token=x")
        event = happen(payload={"title": "Faust", "note": "é\u2028"}, actor="goethe")
        run_jobs(*BOTH)
    (asked,) = server.asked
    assert asked.path == "/in?token=x"
    body = verify(asked, secret)
    assert body["type"] == "stage.premiere"
    assert body["timestamp"] == event.occurred_at.isoformat()
    assert body["data"] == {
        "event": event.id,
        "type": "stage.premiere",
        "subject": "Faust",
        "actor": "goethe",
        "occurred_at": event.occurred_at.isoformat(),
        "payload": {"title": "Faust", "note": "é\u2028"},
        "title": "A play was shown for the first time: Faust",
        "link": "",
        "reason": FIRST,
    }
    assert b'", "' not in asked.body, "compact"
    assert asked.headers["content-type"] == "application/json"
    assert secret.startswith("whsec_")
    assert job().state == State.COMPLETED
    assert job().result == {"status": 200}
    (row,) = Delivery.objects.all()
    assert (row.outcome, row.status, row.attempt, row.error) == ("ok", 200, 1, "")
    assert (row.event_id, row.job_id) == (event.id, job().pk)
    assert row.message_id == asked.headers["webhook-id"]


def test_a_body_that_was_tampered_with_or_another_secret_does_not_verify(run_jobs) -> None:
    with serving() as server:
        _ann, _endpoint, secret = owner(server.url)
        happen(payload={"title": "Faust"})
        run_jobs(*BOTH)
    (asked,) = server.asked
    forged = Asked(asked.method, asked.path, asked.headers, asked.body.replace(b"Faust", b"Fausu"))
    for one, key in ((forged, secret), (asked, new_secret())):
        with pytest.raises(WebhookVerificationError):
            verify(one, key)


def test_one_job_per_endpoint_in_a_lane_of_its_own_found_by_one_query(
    run_jobs, django_assert_num_queries
) -> None:
    ann, bob = person("ann"), person("bob")
    made = [endpoints.create(user, "https://example.org/")[0] for user in (ann, ann, bob)]
    off = endpoints.create(bob, "https://example.org/")[0]
    endpoints.disable(off)
    hold(FIRST, ann, bob, person("carol"))
    event = happen()
    run_jobs("subscriptions.notify")
    found = {(one.routing_key, one.lane) for one in jobs_of(event)}
    assert found == {
        (f"user:{one.user_id}:endpoint:{one.pk}", f"endpoint:{one.pk}") for one in made
    }
    heard = [one for one in audience(event) if one.channel == "webhook"]
    assert len(heard) == 2, "carol has no endpoint"
    with django_assert_num_queries(1):
        assert len(list(Webhook.deliveries(heard))) == 3


def test_it_is_offered_where_the_web_is_and_can_be_switched_off(run_jobs) -> None:
    ann, _endpoint, _secret = owner("https://example.org/")
    EventSubscription.objects.create(
        event_type="stage.premiere", role=FIRST, channel="webhook", user=ann, state="off"
    )
    happen()
    run_jobs("subscriptions.notify")
    assert jobs_of() == []


def test_who_may_not_read_of_it_any_more_gets_nothing(run_jobs) -> None:
    with serving() as server:
        owner(server.url)
        happen(payload={"title": "secret"})
        run_jobs("subscriptions.notify")
        readers["secret"] = Receivers.of(["somebody"])
        run_jobs(WEBHOOK)
    assert server.asked == []
    assert job().state == State.SKIPPED
    assert "may not read" in job().error


def test_who_left_gets_nothing(run_jobs) -> None:
    with serving() as server:
        ann, _endpoint, _secret = owner(server.url)
        happen()
        run_jobs("subscriptions.notify")
        ann.is_active = False
        ann.save()
        run_jobs(WEBHOOK)
    assert server.asked == []
    assert job().state == State.SKIPPED
    assert "not active" in job().error


def test_an_endpoint_that_is_gone_or_anothers_gets_nothing(run_jobs) -> None:
    with serving() as server:
        ann, endpoint, _secret = owner(server.url)
        other, _ = endpoints.create(ann, server.url)
        happen()
        run_jobs("subscriptions.notify")
        Endpoint.objects.filter(pk=endpoint.pk).delete()  # not by the service: its job is left
        Endpoint.objects.filter(pk=other.pk).update(user=person("bob"))
        run_jobs(WEBHOOK)
    assert server.asked == []
    assert {one.state for one in jobs_of()} == {State.CANCELLED}
    assert "deleted" in jobs_of()[0].error


def test_a_job_that_names_no_endpoint_fails(run_jobs) -> None:
    event = happen()
    for key in ("", "user:x:endpoint:1", "group:1", "user:1:endpoint"):
        enqueue(WEBHOOK, event_id=event.id, routing_key=key)
    run_jobs(WEBHOOK)
    assert {one.state for one in jobs_of(event)} == {State.FAILED}
    assert "names no recipient" in jobs_of(event)[0].error


# --- what the answers mean ------------------------------------------------------------------------


def test_408_429_and_5xx_are_tried_again_with_the_same_id(run_jobs, clock) -> None:
    answers = iter([408, 500, 503, 429, 200])
    with serving(lambda asked: Answer(next(answers))) as server:
        _ann, endpoint, _secret = owner(server.url)
        happen()
        run_jobs(*BOTH)
        for _ in range(4):
            clock.step(10_000)
            run_jobs(WEBHOOK)
    assert job().state == State.COMPLETED
    assert len({asked.headers["webhook-id"] for asked in server.asked}) == 1
    assert len({asked.body for asked in server.asked}) == 1
    assert len({asked.headers["webhook-timestamp"] for asked in server.asked}) == 5
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
    answer = Answer(429, headers={"Retry-After": value})
    with serving(lambda asked: answer) as server:
        owner(server.url)
        happen()
        run_jobs(*BOTH)
        late = (job().due_at - events_clock.now()).total_seconds()
        assert wait - 5 < late <= wait
        happen()  # another event: the endpoint is left alone for it, too
        clock.step(wait - 20)
        run_jobs(*BOTH)
        assert len(server.asked) == 1
        answer = Answer()
        clock.step(3600)
        run_jobs(*BOTH)
        assert {one.state for one in jobs_of()} == {State.COMPLETED}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422])
def test_another_4xx_is_tried_a_few_times_and_then_it_is_permanent(
    run_jobs, clock, status: int
) -> None:
    with serving(lambda asked: Answer(status, b"no such hook")) as server:
        _ann, endpoint, _secret = owner(server.url)
        happen()
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
        moved = Answer(status, headers={"Location": there.url})
        with serving(lambda asked: moved) as server:
            _ann, endpoint, _secret = owner(server.url)
            happen()
            run_jobs(*BOTH)
        assert there.asked == []
    assert len(server.asked) == 1
    assert job().state == State.FAILED
    assert "redirects are not followed" in job().error
    assert tries(endpoint) == [(1, status, "failed")]


def test_410_disables_the_endpoint_cancels_what_waits_and_tells_its_owner_once(
    run_jobs, smtp
) -> None:
    with serving(lambda asked: Answer(410)) as server:
        _ann, endpoint, _secret = owner(f"{server.url}/in?token=s3cret-word")
        happen()
        run_jobs("subscriptions.notify")
        for _ in range(3):
            happen()
        Job.objects.filter(handler=WEBHOOK).update(due_at=events_clock.now() + timedelta(days=1))
        run_jobs("subscriptions.notify")
        Job.objects.filter(pk=jobs_of()[0].pk).update(due_at=events_clock.now())
        Job.objects.filter(pk__in=[one.pk for one in jobs_of()[1:]]).update(
            due_at=events_clock.now() + timedelta(days=1)
        )
        run_jobs(WEBHOOK)
        happen()
        run_jobs(*BOTH, "subscriptions.endpoint_disabled")
    assert len(server.asked) == 1
    endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.reason) == ("disabled", "it answered 410 Gone")
    assert tries(endpoint) == [(1, 410, "gone")]
    assert [one.state for one in jobs_of()] == [State.CANCELLED] * 4
    assert all("410" in one.error for one in jobs_of())
    (mail,) = [one for one in smtp.received if "webhook" in one.message["Subject"]]
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
        happen()
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
        happen()
        run_jobs(*BOTH)
    assert job().state == State.COMPLETED
    assert len(endpoint.deliveries.get().answer) == sending.SHOWN


def test_bad_tls_is_tried_again_and_said(run_jobs) -> None:
    with serving() as server:
        _ann, endpoint, _secret = owner(server.url.replace("http:", "https:"))
        happen()
        run_jobs(*BOTH)
    assert job().state == State.PENDING
    assert "SSL" in endpoint.deliveries.get().error


def test_an_address_that_became_private_is_refused_at_each_try(run_jobs, settings, clock) -> None:
    with serving() as server:
        _ann, endpoint, _secret = owner(server.url)
        settings.WEBHOOK_ALLOWED_NETWORKS = []
        settings.WEBHOOK_ALLOW_HTTP = True
        happen()
        run_jobs(*BOTH)
        for _ in range(4):
            clock.step(1000)
            run_jobs(WEBHOOK)
    assert server.asked == []
    assert job().state == State.FAILED
    assert "not a public address" in job().error
    assert [outcome for _, _, outcome in tries(endpoint)] == ["retry", "retry", "failed"]


# --- after a crash --------------------------------------------------------------------------------


def test_a_worker_killed_between_effect_and_settlement_sends_the_same_id_again(
    run_jobs, clock, process_env, tmp_path: Path
) -> None:
    at_work: list = []

    def respond(asked: Asked) -> Answer:
        if at_work:
            at_work.pop().signal(signal.SIGKILL)
        return Answer()

    with serving(respond) as server:
        _ann, _endpoint, secret = owner(server.url)
        happen(payload={"title": "Faust"})
        run_jobs("subscriptions.notify")
        env = process_env | {
            "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "DJANGO_SETTINGS_MODULE": "tests.settings",
        }
        Job.objects.filter(handler=WEBHOOK).update(due_at=events_clock.now() + timedelta(days=1))
        with worker(env, [WEBHOOK], log=tmp_path / "hooks.log") as sender:
            at_work.append(sender)
            Job.objects.filter(handler=WEBHOOK).update(due_at=events_clock.now())
            tick.wake_due()
            wait_until(lambda: server.asked, 30, "the POST")
            assert sender.process.wait(10) == -signal.SIGKILL
        assert job().state == State.RUNNING
        clock.step(200)
        rescue()
        clock.step(10)
        run_jobs(WEBHOOK)
    assert job().state == State.COMPLETED
    first, second = server.asked
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    for one in (first, second):
        assert verify(one, secret)["data"]["subject"] == "Faust"


def test_no_secret_shows_in_jobs_attempts_logs_or_tracebacks(
    run_jobs, clock, caplog, capfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(lambda asked: Answer(500)) as server:
        _ann, endpoint, secret = owner(f"{server.url}/in?token=t0ken-word")
        fresh = endpoints.rotate(endpoint)
        happen()
        run_jobs(*BOTH)
        monkeypatch.setattr(sending, "_tls", lambda ca_file: 1 / 0)  # a bug of our own
        clock.step(10_000)
        run_jobs(WEBHOOK)
    assert "ZeroDivisionError" in job().error + "".join(
        Attempt.objects.values_list("traceback", flat=True)
    )
    told = "".join(
        str(value)
        for model in (Job, Attempt, Delivery)
        for row in model.objects.values()
        for value in row.values()
    )
    written = capfd.readouterr()
    told += caplog.text + written.out + written.err
    stored = Endpoint.objects.values().get()
    for one in (secret, fresh):
        bare = one.removeprefix("whsec_")
        assert bare not in told
        assert bare not in str(stored)
        assert str(stored["secret"]) not in told
    assert "t0ken-word" not in told


def test_a_secret_that_cannot_be_read_holds_the_jobs_and_says_so(run_jobs, settings, clock) -> None:
    with serving() as server:
        _ann, _endpoint, _secret = owner(server.url)
        before, settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS, ["A" * 43]
        happen()
        run_jobs(*BOTH)
        assert job().state == State.PENDING
        assert job().attempt == 0
        assert "ENCRYPTION_KEYS" in job().error
        settings.ENCRYPTION_KEYS = before
        clock.step(4000)
        run_jobs(WEBHOOK)
    assert job().state == State.COMPLETED
    assert server.asked


# --- endpoints that are slow or away --------------------------------------------------------------


def test_an_endpoint_that_hangs_is_left_alone_and_the_others_get_theirs(
    run_jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "TOTAL_SECONDS", 1.0)
    monkeypatch.setattr(courier, "PATIENCE", 0.2)
    with silent_port() as port, serving() as server:
        ann, dead, _secret = owner(f"http://127.0.0.1:{port}/")
        endpoints.create(ann, server.url)
        began = time.monotonic()
        for _ in range(20):
            happen()
        run_jobs(*BOTH)
        assert time.monotonic() - began < 10
        # On a busy machine some were not begun in time, and come back in a second.
        wait_until(
            lambda: run_jobs(WEBHOOK) >= 0 and len(server.asked) >= 20, 20, "all have theirs"
        )
    assert len({asked.headers["webhook-id"] for asked in server.asked}) == 20
    waiting = jobs_of(lane=f"endpoint:{dead.pk}")
    assert {one.state for one in waiting} == {State.PENDING}
    assert sum(one.attempt for one in waiting) <= courier.AT_ONCE
    assert "no answer in 1 s" in dead.deliveries.first().error


def test_while_another_worker_waits_for_one_that_hangs_it_is_given_up_uncharged(
    run_jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "PATIENCE", 0.2)
    assert bucket.take(f"{WEBHOOK}:patience", 1 / sending.TOTAL_SECONDS, 1) == 0
    with silent_port() as port:
        _ann, endpoint, _secret = owner(f"http://127.0.0.1:{port}/")
        began = time.monotonic()
        happen()
        run_jobs(*BOTH)
        assert time.monotonic() - began < 5
    assert (job().state, job().attempt) == (State.PENDING, 0)
    assert tries(endpoint) == [(1, None, "retry")]
    endpoint.refresh_from_db()
    assert endpoint.failing_since is None, "it had not its full time"


def test_a_long_outage_costs_no_attempts_and_ends_for_all_at_once(
    run_jobs, settings, clock
) -> None:
    settings.WEBHOOK_PER_SECOND = 100
    ann = person("ann")
    hold(FIRST, ann)
    endpoint, _secret = endpoints.create(ann, f"http://127.0.0.1:{closed_port()}/")
    events = [happen() for _ in range(30)]
    run_jobs(*BOTH)
    for _ in range(60):
        clock.step(1200)
        run_jobs(WEBHOOK)
    assert {one.state for one in jobs_of(events)} == {State.PENDING}
    charged = [one.attempt for one in jobs_of(events) if one.attempt]
    assert len(charged) <= courier.AT_ONCE
    with serving() as server:
        Endpoint.objects.filter(pk=endpoint.pk).update(url=server.url)
        clock.step(1200)
        run_jobs(WEBHOOK)
        done = [one.state for one in jobs_of(events)].count(State.COMPLETED)
    assert done >= 30 - courier.AT_ONCE


def test_an_endpoint_gets_no_more_per_second_than_its_bucket_holds(
    run_jobs, settings, clock
) -> None:
    settings.WEBHOOK_PER_SECOND = 5
    with serving() as server:
        owner(server.url)
        events = [happen() for _ in range(40)]
        run_jobs("subscriptions.notify", WEBHOOK)
        assert 5 <= len(server.asked) <= 8
        assert sum(one.attempt for one in jobs_of(events)) <= 8, "waiting is not charged"
        rounds = 0
        while len(server.asked) < 40 and rounds < 60:
            clock.step(1)
            run_jobs(WEBHOOK)
            rounds += 1
    assert 6 <= rounds <= 30
    assert {one.state for one in jobs_of(events)} == {State.COMPLETED}
    assert max(one.claim_no for one in jobs_of(events)) <= 12
