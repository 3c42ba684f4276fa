"""What owners do with their endpoints, and what Tailrace does with one that keeps failing."""

from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from django.db import transaction
from standardwebhooks import WebhookVerificationError

from events import clock as events_clock
from jobs.drain import drain
from jobs.models import Attempt, Breaker, Job
from jobs.states import State
from subscriptions import endpoints, sealing, sending
from subscriptions.endpoints import EndpointError
from subscriptions.models import Delivery, Endpoint
from tests.kit import at_once, wait_until
from tests.servers.web import Answer, Asked, closed_port, serving, silent_port
from tests.subscriptions.hooks import BOTH, WEBHOOK, job, jobs_of, owner, tries, verify
from tests.subscriptions.stage import FIRST, happen, hold, person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _local(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


# --- secrets --------------------------------------------------------------------------------------


def test_a_secret_is_shown_once_and_encrypted_at_rest() -> None:
    _ann, endpoint, secret = owner("https://example.org/hook")
    endpoint.refresh_from_db()
    assert secret.startswith("whsec_")
    assert secret.removeprefix("whsec_") not in endpoint.secret
    assert sealing.unseal(endpoint.secret) == secret
    assert sealing.seal("x") != sealing.seal("x")


def test_for_24_hours_after_a_rotation_both_secrets_sign(run_jobs, clock) -> None:
    with serving() as server:
        _ann, endpoint, old = owner(server.url)
        new = endpoints.rotate(endpoint)
        happen()
        run_jobs(*BOTH)
        (asked,) = server.asked
        assert len(asked.headers["webhook-signature"].split()) == 2
        assert verify(asked, old) == verify(asked, new)
        newest = endpoints.rotate(endpoint)
        happen()
        run_jobs(*BOTH)
        assert verify(server.asked[1], newest) == verify(server.asked[1], new)
        with pytest.raises(WebhookVerificationError):
            verify(server.asked[1], old)
        # Past the overlap, by the time that the endpoint's row knows.
        Endpoint.objects.update(old_secret_until=events_clock.now() - timedelta(seconds=1))
        happen()
        run_jobs(*BOTH)
        assert len(server.asked[2].headers["webhook-signature"].split()) == 1
        assert verify(server.asked[2], newest)
        with pytest.raises(WebhookVerificationError):
            verify(server.asked[2], new)


def test_the_overlap_lasts_24_hours(clock) -> None:
    _ann, endpoint, _secret = owner("https://example.org/hook")
    endpoints.rotate(endpoint)
    assert endpoint.old_secret_until is not None
    left = endpoint.old_secret_until - events_clock.now()
    assert timedelta(hours=23, minutes=59) < left <= timedelta(hours=24)


def test_keys_rotate_the_newest_encrypts_and_older_ones_decrypt(settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode().rstrip("=")
    settings.ENCRYPTION_KEYS = [old]
    sealed = sealing.seal("word")
    settings.ENCRYPTION_KEYS = [new, old]
    assert sealing.unseal(sealed) == "word"
    again = sealing.seal("word")
    settings.ENCRYPTION_KEYS = [new]
    assert sealing.unseal(again) == "word"
    with pytest.raises(sealing.Unreadable, match="ENCRYPTION_KEYS"):
        sealing.unseal(sealed)
    settings.ENCRYPTION_KEYS = []
    with pytest.raises(sealing.Unreadable):
        sealing.unseal(again)
    assert sealing.unseal(sealing.seal("by SECRET_KEY")) == "by SECRET_KEY"


# --- errors that name the value and the way out ---------------------------------------------------


def test_a_url_that_nothing_may_be_sent_to_is_refused_when_it_is_saved() -> None:
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


def test_nobody_has_endpoints_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "MOST", 2)
    ann = person("ann")
    for _ in range(2):
        endpoints.create(ann, "https://example.org/")
    with pytest.raises(EndpointError, match="delete one first"):
        endpoints.create(ann, "https://example.org/")


def test_moves_that_are_none_are_refused() -> None:
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


# --- pause, disable, delete, replay ---------------------------------------------------------------


def test_a_paused_endpoint_keeps_its_deliveries_uncharged_until_it_is_resumed(
    run_jobs, clock
) -> None:
    with serving() as server:
        _ann, endpoint, _secret = owner(server.url)
        happen()
        run_jobs("subscriptions.notify")
        endpoints.pause(endpoint, by="ann")
        happen()
        for _ in range(20):
            run_jobs(*BOTH)
            clock.step(3600)
        assert server.asked == []
        held = jobs_of()
        assert [(one.state, one.attempt) for one in held] == [(State.PENDING, 0)] * 2
        assert "held: paused by ann" in held[0].error
        assert max(one.claim_no for one in held) <= 10, "seldom looked at"
        endpoints.resume(endpoint)
        run_jobs(WEBHOOK)
    assert len(server.asked) == 2
    assert {one.state for one in jobs_of()} == {State.COMPLETED}


def test_disabling_and_deleting_cancel_what_waits_with_a_reason(run_jobs) -> None:
    ann, endpoint, _secret = owner("https://example.org/")
    other, _ = endpoints.create(ann, "https://example.org/")
    happen()
    run_jobs("subscriptions.notify")
    endpoints.disable(endpoint, by="ann")
    first, second = jobs_of()
    assert first.state == State.CANCELLED
    assert first.error == "cancelled by ann, who disabled the endpoint"
    assert second.state == State.PENDING
    endpoints.delete(other, by="ann")
    assert jobs_of()[1].error == "cancelled by ann, who deleted the endpoint"
    happen()
    run_jobs(*BOTH)
    assert len(jobs_of()) == 2, "a disabled one hears of nothing"


def test_what_failed_is_replayed_with_its_id(run_jobs, clock) -> None:
    answer = Answer(301)
    with serving(lambda asked: answer) as server:
        _ann, endpoint, _secret = owner(server.url)
        happen()
        run_jobs(*BOTH)
        assert job().state == State.FAILED
        answer = Answer()
        failed = endpoints.deliveries_of(endpoint).get()
        assert endpoints.replay(failed, by="ann") == job().pk
        run_jobs(WEBHOOK)
        assert job().state == State.COMPLETED
        with pytest.raises(EndpointError, match="is not sent again: it is completed"):
            endpoints.replay(job())
        endpoints.disable(endpoint)
        with pytest.raises(EndpointError, match="enable it first"):
            endpoints.replay(failed)
    assert len({asked.headers["webhook-id"] for asked in server.asked}) == 1
    assert [row.outcome for row in endpoints.deliveries_of(endpoint)] == ["ok", "failed"]


# --- test deliveries ------------------------------------------------------------------------------


def test_a_test_delivery_is_sent_at_once_and_signed() -> None:
    with serving(lambda asked: Answer(200, b"thanks")) as server:
        _ann, endpoint, secret = owner(server.url)
        row = endpoints.test_delivery(endpoint)
        again = endpoints.test_delivery(endpoint)
    assert (row.outcome, row.status, row.answer, row.job_id) == ("ok", 200, "thanks", None)
    assert verify(server.asked[0], secret)["type"] == "tailrace.test"
    assert row.message_id != again.message_id
    with pytest.raises(EndpointError, match="send another test"):
        endpoints.replay(row)


def test_a_test_delivery_is_guarded_bounded_and_says_what_went_wrong(
    settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "TOTAL_SECONDS", 0.3)
    _ann, endpoint, _secret = owner(f"http://127.0.0.1:{closed_port()}/")
    assert "Connect call failed" in endpoints.test_delivery(endpoint).error
    with silent_port() as port:
        endpoints.change(endpoint, url=f"http://127.0.0.1:{port}/")
        assert endpoints.test_delivery(endpoint).error == "no answer in 0.3 s"
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    settings.WEBHOOK_ALLOW_HTTP = True
    assert "not a public address" in endpoints.test_delivery(endpoint).error
    endpoint.refresh_from_db()
    assert endpoint.failing_since is None, "a test says nothing of its health"
    for _ in range(2):
        endpoints.test_delivery(endpoint)
    with pytest.raises(EndpointError, match=r"too many tests .+ again in \d+ s"):
        endpoints.test_delivery(endpoint)


# --- health ---------------------------------------------------------------------------------------


def test_after_five_days_of_failure_it_is_disabled_and_its_owner_told_once(
    run_jobs, clock, smtp
) -> None:
    with serving(lambda asked: Answer(500)) as server:
        _ann, endpoint, _secret = owner(server.url)
        for hour in range(5 * 24 + 12):
            if hour % 6 == 0:
                happen()
            run_jobs("subscriptions.notify", WEBHOOK)
            endpoint.refresh_from_db()
            if hour < 5 * 24:
                assert endpoint.state == "enabled", f"after {hour} hours"
            if endpoint.state == "disabled":
                break
            clock.step(3600)
        run_jobs("subscriptions.endpoint_disabled")
        before = len(server.asked)
        happen()
        run_jobs(*BOTH, "subscriptions.endpoint_disabled")
        assert len(server.asked) == before
    assert endpoint.state == "disabled"
    assert endpoint.reason == "it has failed for 5 days"
    assert not [one for one in jobs_of() if one.state == State.PENDING]
    mails = [one for one in smtp.received if "was disabled" in one.message["Subject"]]
    assert len(mails) == 1
    assert Job.objects.filter(handler="subscriptions.endpoint_disabled").count() == 1


def test_one_success_in_five_days_forgets_the_failures(run_jobs, clock) -> None:
    answer = Answer(500)
    with serving(lambda asked: answer) as server:
        _ann, endpoint, _secret = owner(server.url)
        for day in range(9):
            answer = Answer(200 if day == 4 else 500)
            happen()
            run_jobs(*BOTH)
            endpoint.refresh_from_db()
            assert (endpoint.failing_since is None) == (day == 4)
            clock.step(86_400)
    assert endpoint.state == "enabled"


def test_two_workers_that_see_it_fail_disable_it_once(run_jobs, clock) -> None:
    _ann, endpoint, _secret = owner("https://example.org/")

    def disable(number: int) -> bool:
        with transaction.atomic():
            return endpoints.disable_for(endpoint.pk, "it has failed for 5 days")

    assert sorted(at_once(4, disable)) == [False, False, False, True]
    assert Job.objects.filter(handler="subscriptions.endpoint_disabled").count() == 1


def test_an_enabled_endpoint_begins_anew(run_jobs, clock) -> None:
    answer = Answer(500)
    with serving(lambda asked: answer) as server:
        _ann, endpoint, _secret = owner(server.url)
        for _ in range(6):
            happen()
        run_jobs(*BOTH)
        assert Breaker.objects.get().open_until is not None
        endpoints.disable(endpoint)
        answer = Answer()
        endpoints.enable(endpoint)
        happen()
        run_jobs(*BOTH)
        endpoint.refresh_from_db()
        assert endpoint.failing_since is None
        assert jobs_of()[-1].state == State.COMPLETED


# --- the breaker, with several workers ------------------------------------------------------------


def test_a_half_open_breaker_lets_one_job_through_of_all_workers(run_jobs, clock) -> None:
    with serving(lambda asked: Answer(500)) as server:
        owner(server.url)
        events = [happen() for _ in range(60)]
        run_jobs(*BOTH)
        tried = len(server.asked)
        assert tried < 15
        clock.step(10_000)
        at_once(4, lambda number: drain(WEBHOOK))
        assert len(server.asked) == tried + 1
    assert {one.state for one in jobs_of(events)} == {State.PENDING}
    lost = Attempt.objects.filter(outcome="lost")
    assert not lost.exists()


def test_deliveries_of_several_workers_are_each_made_once(run_jobs, settings) -> None:
    settings.WEBHOOK_PER_SECOND = 1000
    with serving() as server:
        ann = person("ann")
        hold(FIRST, ann)
        for number in range(10):
            endpoints.create(ann, f"{server.url}/{number}")
        for _ in range(12):
            happen()
        run_jobs("subscriptions.notify")
        at_once(4, lambda number: drain(WEBHOOK))
        # On a busy machine some were not begun in time, and come back in a second.
        wait_until(lambda: run_jobs(WEBHOOK) >= 0 and len(server.asked) >= 120, 20, "all of them")
    ids = [asked.headers["webhook-id"] for asked in server.asked]
    assert len(ids) == len(set(ids)) == 120
    assert Delivery.objects.filter(outcome="ok").count() == 120


def test_an_endpoint_that_is_deleted_while_it_is_sent_to_does_no_harm(run_jobs) -> None:
    ids: list[int] = []

    def respond(asked: Asked) -> Answer:
        if ids:
            Endpoint.objects.filter(pk=ids.pop()).delete()
        return Answer()

    with serving(respond) as server:
        ann, endpoint, _secret = owner(server.url)
        ids.append(endpoint.pk)
        endpoints.create(ann, f"{server.url}/other")
        happen()
        run_jobs(*BOTH)
    assert len(server.asked) == 2
    assert {one.state for one in jobs_of()} == {State.COMPLETED}
    assert Delivery.objects.count() == 1


def test_tries_are_listed_the_newest_first(run_jobs, clock) -> None:
    with serving(lambda asked: Answer(500)) as server:
        _ann, endpoint, _secret = owner(server.url)
        happen()
        run_jobs(*BOTH)
        clock.step(10)
        run_jobs(WEBHOOK)
    assert tries(endpoint) == [(1, 500, "retry"), (2, 500, "retry")]
    assert [row.attempt for row in endpoints.deliveries_of(endpoint)] == [2, 1]
